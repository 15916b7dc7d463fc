/** The board's colours as a canvas takes them: read from the style sheet, and again when the theme changes. */

export type Rgb = [number, number, number];

const NAMES = ["ground", "text", "dim", "faint", "line", "brand", "good", "fair", "bad", "code-ground"] as const;
export type Palette = Record<(typeof NAMES)[number], Rgb>;

export function palette(element: Element): Palette {
  const probe = document.createElement("span");
  element.append(probe);
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
  const found = {} as Palette;
  for (const name of NAMES) {
    probe.style.color = `var(--kw-${name})`;
    canvas.fillStyle = getComputedStyle(probe).color;
    canvas.fillRect(0, 0, 1, 1);
    const [r = 0, g = 0, b = 0] = canvas.getImageData(0, 0, 1, 1).data;
    found[name] = [r, g, b];
  }
  probe.remove();
  return found;
}

/** A colour between two, `share` of the way from the first to the second. */
export function mix(from: Rgb, to: Rgb, share: number): Rgb {
  return [0, 1, 2].map((i) => Math.round(from[i]! + (to[i]! - from[i]!) * share)) as Rgb;
}

export function css([r, g, b]: Rgb, alpha = 1): string {
  return alpha === 1 ? `rgb(${r},${g},${b})` : `rgba(${r},${g},${b},${alpha})`;
}

/** Calls `act` when the notebook's or the system's theme changes, until the signal ends it. */
export function onTheme(signal: AbortSignal, act: () => void): void {
  const observer = new MutationObserver(act);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-name", "data-jp-theme-light", "class"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", act, { signal });
  signal.addEventListener("abort", () => observer.disconnect());
}

/** Makes a canvas as sharp as the screen, for drawing in CSS pixels. */
export function sharp(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
