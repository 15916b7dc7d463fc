/** SHA-256 of the editors that were built with this board; empty where the page brings its own. The build puts it in. */
declare const EDITORS: string;

/** esbuild gives a style sheet as its text. */
declare module "*.css" {
  const text: string;
  export default text;
}
