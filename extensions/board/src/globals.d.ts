/** esbuild puts a module that is required into a function, which runs when it is first needed. */
declare const require: (path: "./codemirror") => typeof import("./codemirror");

/** esbuild gives a style sheet as its text. */
declare module "*.css" {
  const text: string;
  export default text;
}
