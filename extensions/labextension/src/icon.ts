import { LabIcon } from "@jupyterlab/ui-components";
import svgstr from "./icon.svg";

export const icon = new LabIcon({ name: "kernel-workbench:icon", svgstr });
