/** The module that anywidget loads: one store and one set of panels per view. */

import { Chart } from "./chart";
import { mountControls } from "./controls";
import { h } from "./dom";
import { mountHeader } from "./header";
import { Inspector } from "./inspector";
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
  const head = h("header", { class: "kw-head" });
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
  el.replaceChildren(root);
  mountHeader(head, store, life.signal);
  mountControls(controls, store, life.signal);
  mountLive(live, store, life.signal);
  new Chart(chart, store, life.signal);
  const inspect = new Inspector(inspector, store, life.signal);
  new Table(table, store, () => inspect.focus(), life.signal);
  store.on("run", life.signal, () => board.classList.toggle("kw-nothing", store.rows.size === 0));
  return () => life.abort();
}

/**
 * A notebook in command mode takes single keys for commands ("d d" deletes the cell); keys pressed in the board are the board's. Those
 * with Ctrl or Command stay the notebook's, so that saving and the command palette go on working.
 */
function keepKeys(root: HTMLElement): void {
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  });
}

export default { render };
