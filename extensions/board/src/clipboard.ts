/** Copying: the clipboard needs a secure origin; elsewhere the browser's old command does it. */

import { button, h } from "./dom";

export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = h("textarea", { class: "kw-sr" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("no clipboard");
}

/** A button that copies what `text` gives when it is pressed, and says so on itself. */
export function copyButton(text: () => string, label = "Copy code"): HTMLButtonElement {
  const control = button(label, "Copies to the clipboard.", () => {
    copyText(text()).then(
      () => (control.textContent = "Copied"),
      () => (control.textContent = "Could not copy: select it below"),
    );
  });
  return control;
}
