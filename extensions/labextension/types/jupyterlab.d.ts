/**
 * What the extension uses of JupyterLab 4, and no more.
 *
 * JupyterLab itself gives these modules when the extension is loaded, so nothing of them is bundled, and its 400 MB of packages are not
 * needed to build. The browser tests hold these declarations against the real thing.
 */

declare module "@lumino/coreutils" {
  export class Token<T> {
    constructor(name: string, description?: string);
    readonly name: string;
    private _type: T;
  }
}

declare module "@lumino/widgets" {
  export class Widget {
    constructor(options?: { node?: HTMLElement });
    readonly node: HTMLElement;
    readonly isAttached: boolean;
    readonly isDisposed: boolean;
    readonly isVisible: boolean;
    id: string;
    readonly title: { label: string; caption: string; icon: unknown; closable: boolean };
    addClass(name: string): void;
    dispose(): void;
    protected onAfterAttach(message: unknown): void;
    protected onBeforeDetach(message: unknown): void;
    protected onAfterShow(message: unknown): void;
    protected onBeforeHide(message: unknown): void;
  }
}

declare module "@jupyterlab/ui-components" {
  export class LabIcon {
    constructor(options: { name: string; svgstr: string });
  }
}

declare module "@jupyterlab/application" {
  import type { Widget } from "@lumino/widgets";

  type Args = Record<string, unknown>;
  interface CommandOptions {
    label: string | ((args: Args) => string);
    caption?: string | ((args: Args) => string);
    icon?: unknown;
    execute(args: Args): unknown;
    isEnabled?(args: Args): boolean;
    isVisible?(args: Args): boolean;
    describedBy?: { args: Record<string, unknown> };
  }
  export interface JupyterFrontEnd {
    readonly commands: {
      addCommand(id: string, options: CommandOptions): unknown;
      notifyCommandChanged(id?: string): void;
      execute(id: string, args?: Args): Promise<unknown>;
      hasCommand(id: string): boolean;
    };
    readonly shell: {
      add(widget: Widget, area?: string, options?: { rank?: number; mode?: string }): void;
      activateById(id: string): void;
      readonly currentWidget: Widget | null;
    };
    readonly docRegistry: {
      addFileType(type: Record<string, unknown>): unknown;
      addWidgetFactory(factory: unknown): unknown;
    };
  }
  export interface JupyterFrontEndPlugin<T> {
    id: string;
    description?: string;
    autoStart?: boolean;
    requires?: unknown[];
    optional?: unknown[];
    activate(app: JupyterFrontEnd, ...services: never[]): T;
  }
}

declare module "@jupyterlab/apputils" {
  import type { Token } from "@lumino/coreutils";
  import { Widget } from "@lumino/widgets";

  export interface ICommandPalette {
    addItem(item: { command: string; category: string; args?: Record<string, unknown> }): unknown;
  }
  export const ICommandPalette: Token<ICommandPalette>;

  export class MainAreaWidget<T extends Widget = Widget> extends Widget {
    constructor(options: { content: T });
    readonly content: T;
  }

  export namespace Dialog {
    interface Button {
      label: string;
      accept: boolean;
    }
    function okButton(options?: { label?: string; caption?: string }): Button;
    function cancelButton(options?: { label?: string; caption?: string }): Button;
    function createButton(options: { label: string; caption?: string; accept?: boolean; displayType?: "default" | "warn" }): Button;
  }
  export function showDialog(options: {
    title: string;
    body?: Widget | string;
    buttons?: readonly Dialog.Button[];
    defaultButton?: number;
    focusNodeSelector?: string;
  }): Promise<{ button: Dialog.Button }>;

  export namespace InputDialog {
    function getText(options: { title: string; label?: string; text?: string }): Promise<{ value: string | null }>;
  }

  export namespace Notification {
    interface Options {
      autoClose?: number | false;
      actions?: readonly { label: string; callback(event: MouseEvent): void; caption?: string }[];
    }
    function info(message: string, options?: Options): string;
    function success(message: string, options?: Options): string;
    function warning(message: string, options?: Options): string;
    function error(message: string, options?: Options): string;
  }
}

declare module "@jupyterlab/docregistry" {
  import { Widget } from "@lumino/widgets";

  export interface Context {
    readonly path: string;
    readonly ready: Promise<void>;
    readonly model: { toString(): string };
  }
  export class DocumentWidget extends Widget {
    constructor(options: { content: Widget; context: Context });
  }
  export abstract class ABCWidgetFactory<T extends DocumentWidget> {
    constructor(options: { name: string; modelName: string; fileTypes: string[]; defaultFor: string[]; readOnly: boolean });
    protected abstract createNewWidget(context: Context): T;
  }
}

declare module "@jupyterlab/notebook" {
  import type { Token } from "@lumino/coreutils";
  import type { Widget } from "@lumino/widgets";
  import type { Signal, SharedNotebook, SharedCell, Kernel } from "jupyterlab-parts";

  export interface Cell extends Widget {
    readonly model: { readonly id: string; readonly type: string; readonly sharedModel: SharedCell };
    readonly editor: {
      getCursorPosition(): { line: number; column: number };
      setCursorPosition(position: { line: number; column: number }): void;
      focus(): void;
    } | null;
    readonly outputArea?: Widget & { readonly model: { toJSON(): { data?: Record<string, unknown> }[] } };
  }
  export interface NotebookPanel extends Widget {
    readonly content: Widget & {
      readonly widgets: readonly Cell[];
      readonly activeCell: Cell | null;
      activeCellIndex: number;
      scrollToItem?(index: number, align?: string): Promise<void>;
      readonly model: { readonly sharedModel: SharedNotebook; readonly readOnly?: boolean } | null;
    };
    readonly context: { readonly path: string };
    readonly sessionContext: {
      readonly session: { readonly kernel: Kernel | null } | null;
      readonly kernelChanged: Signal;
      readonly statusChanged: Signal;
    };
  }
  export interface INotebookTracker {
    readonly currentWidget: NotebookPanel | null;
    readonly activeCell: Cell | null;
    readonly currentChanged: Signal;
    readonly activeCellChanged: Signal;
    find(test: (panel: NotebookPanel) => boolean): NotebookPanel | undefined;
  }
  export const INotebookTracker: Token<INotebookTracker>;
}

declare module "jupyterlab-parts" {
  export interface Signal {
    connect(slot: () => void): boolean;
    disconnect(slot: () => void): boolean;
  }
  export interface SharedCell {
    getId(): string;
    getSource(): string;
    updateSource(start: number, end: number, text: string): void;
    setMetadata(name: string, value: unknown): void;
    transact?(act: () => void, undoable?: boolean): void;
    readonly undoManager: { stopCapturing(): void } | null;
  }
  export interface SharedNotebook {
    readonly cells: readonly SharedCell[];
    insertCell(index: number, cell: Record<string, unknown>): SharedCell;
    readonly undoManager: { stopCapturing(): void } | null;
  }
  export interface Kernel {
    readonly status: string;
    requestExecute(content: {
      code: string;
      silent: boolean;
      store_history: boolean;
      allow_stdin: boolean;
      stop_on_error: boolean;
      user_expressions: Record<string, string>;
    }): {
      readonly done: Promise<{ content: { status: string; user_expressions?: Record<string, Expression> } }>;
      dispose(): void;
    };
  }
  export type Expression =
    | { status: "ok"; data: Record<string, unknown> }
    | { status: "error"; ename: string; evalue: string };
}

declare module "@jupyterlab/rendermime-interfaces" {
  export namespace IRenderMime {
    interface IMimeModel {
      readonly trusted: boolean;
      readonly data: Record<string, unknown>;
    }
  }
}
