/** esbuild gives a picture as its text. */
declare module "*.svg" {
  const text: string;
  export default text;
}
/** What container.ts leaves for the modules that it loads. */
declare var kernelWorkbench: { base: string; modules: Record<string, unknown> };
