/** The module that anywidget loads: one store and one set of panels per view. */

import type { Verb } from "../../protocol";
import { bring } from "./bring";
import { Chart } from "./chart";
import { mountControls } from "./controls";
import { button, h, perFrame, whenIdle } from "./dom";
import { fit } from "./fit";
import { mountHeader } from "./header";
import { mountImages } from "./images";
import { Inspector } from "./inspector";
import { mountKeys } from "./keys";
import { mountLive } from "./live";
import type { Model } from "./model";
import { Store } from "./store";
import styles from "./styles.css";
import tabStyles from "./tabs.css";
import { Table } from "./table";
import { words } from "./words";

interface Props {
  model: Model;
  el: HTMLElement;
}

function render({ model, el }: Props): () => void {
  const life = new AbortController();
  const store = new Store(model, life.signal);
  const head = h("div", { class: "kw-head" });
  const controls = h("div", { class: "kw-controls" });
  const live = h("section", { class: "kw-live", "aria-label": "At work" });
  const chart = h("section", { class: "kw-panel kw-panel-chart", "aria-label": "Progress" });
  const table = h("section", { class: "kw-panel kw-panel-table", "aria-label": "Variants" });
  const inspector = h("section", { class: "kw-panel kw-panel-inspector", "aria-label": "Selected variant" });
  const board = h(
    "div",
    { class: "kw-board", role: "region", "aria-label": "Kernel Workbench" },
    head,
    controls,
    live,
    h("div", { class: "kw-body" }, h("div", { class: "kw-left" }, chart, table), inspector),
    words(),
  );
  const root = h("div", { class: "kw-root" }, h("style", {}, styles, tabStyles), board);
  keepKeys(root);
  fit(root, { name: "kw", under: [560, 720], over: [940, 1500] }, life.signal);
  fit(table, { name: "kw-rows", under: [600, 680, 860] }, life.signal);
  el.replaceChildren(root);
  mountImages(root, life.signal);
  const wide = button("Widen", "Gives the variant the whole width. Key: w", () => {
    const on = board.classList.toggle("kw-wide");
    wide.textContent = on ? "Narrow" : "Widen";
    wide.setAttribute("aria-pressed", String(on));
  }, { class: "kw-button kw-widen", "aria-pressed": "false" });
  mountHeader(head, store, life.signal);
  mountLive(live, store, life.signal);
  const marks = new Chart(chart, store, life.signal);
  const inspect = new Inspector(inspector, store, wide, life.signal);
  const rows = new Table(table, store, () => inspect.focus(), life.signal);
  const press = (verb: Verb) => (): void => steer.press(verb);
  const keys = mountKeys(root, [
    { keys: ["s"], says: "Step: judges one more variant", act: press("step") },
    { keys: ["a"], says: "Auto: runs on", act: press("auto") },
    { keys: ["p"], says: "Pause, or Resume", act: () => steer.press(store.header?.state === "running" ? "pause" : "resume") },
    { keys: ["h"], says: "Write a hint", act: () => steer.write() },
    { keys: ["/"], says: "Find a variant", act: () => rows.find() },
    { keys: ["t"], says: "Go to the table", act: () => rows.focus() },
    { keys: ["g"], says: "Go to the chart", act: () => marks.focus() },
    { keys: ["j", "]"], says: "The next variant", act: () => rows.step(1) },
    { keys: ["k", "["], says: "The variant before", act: () => rows.step(-1) },
    { keys: ["w"], says: "Give the variant the whole width, and back", act: () => wide.click() },
    ...inspect.names.map((name, place) => ({ keys: [String((place + 1) % 10)], says: `Tab ${name}`, act: () => inspect.open(place) })),
  ]);
  const steer = mountControls(controls, store, keys.help, life.signal);
  store.on("run", life.signal, () => board.classList.toggle("kw-nothing", store.rows.size === 0));
  // When the first screen stands. Who opens a tab with code sooner reads it plain meanwhile.
  const begun = new AbortController();
  store.on("run", begun.signal, perFrame(life.signal, whenIdle(life.signal, () => {
    if (!begun.signal.aborted) bring(store, life.signal);
    begun.abort();
  })));
  return () => life.abort();
}

/**
 * A notebook in command mode takes single keys for commands ("d d" deletes the cell); keys pressed in the board are the board's. Those
 * with Ctrl or Command stay the notebook's, so that saving and the command palette go on working.
 */
function keepKeys(root: HTMLElement): void {
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
  });
}

export default { render };
