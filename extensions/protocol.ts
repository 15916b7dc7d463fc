/**
 * What travels between Python and the browser.
 *
 * The first half mirrors the frozen records of `workbench/events.py` and what they hold, field by field, in the JSON that
 * `workbench.records.encode` makes. The second half is the board's own protocol. A test parses the interfaces of this file and
 * holds their names and fields against the Python classes and dictionaries: change both sides together.
 */

/** JSON has no NaN and no infinities: they travel as `{"$float": "nan"}`. */
export type Float = number | { $float: string };
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type Verdict =
  | "right"
  | "lower_precision"
  | "wrong"
  | "refused"
  | "crashed"
  | "timed_out"
  | "does_not_build"
  | "time_not_confirmed"
  | "not_judged";
export type RunState = "preparing" | "waiting" | "running" | "paused" | "stopping" | "ended" | "interrupted";
export type BriefKind = "seed" | "step" | "repair" | "crossover" | "tune" | "person";
export type Backend = "triton" | "cuda";

// ---- records ---------------------------------------------------------------------------------------------------------------

export interface Candidate {
  id: string;
  backend: Backend;
  source: string;
  entry: string;
  recipe: Record<string, Json>;
  parents: string[];
  island: string;
  proposer: string;
  plan: string;
  brief: string;
  cites: string[];
}

export interface Witness {
  seed: number;
  input_set: string;
  output: number;
  index: number[];
  got: Float | null;
  expected: Float | null;
  bound: Float | null;
  pattern: string;
}

export interface Timing {
  median_us: number;
  low_us: number;
  high_us: number;
  p10_us: number;
  p90_us: number;
  calls: number;
  blocks: number;
  modelled: boolean;
}

export interface Baseline {
  name: "eager" | "compile";
  timing: Timing | null;
  reason: string;
}

export interface Speedup {
  ratio: number;
  low: number;
  high: number;
  against: string;
}

export interface Resources {
  kernel: string;
  grid: number[];
  launches: number;
  warps: number;
  stages: number;
  registers: number;
  spill_bytes: number;
  shared_bytes: number;
  occupancy: number;
  limited_by: string;
  waves: number;
  vector_bytes: number;
  tensor_cores: boolean;
  dot_precision: string;
  backend: string;
}

export interface ModelledTime {
  total_us: number;
  dram_bytes: number;
  l2_bytes: number;
  flops: number;
  memory_us: number;
  l2_us: number;
  compute_us: number;
  launch_us: number;
  launches: number;
  limiter: string;
}

export interface Environment {
  python: string;
  torch: string;
  triton: string;
  gpu: string;
  driver: string;
  sandbox: string;
}

export interface Evaluation {
  id: string;
  candidate: string;
  task: string;
  verdict: Verdict;
  reason: string;
  parameters: Record<string, Json>;
  witness: Witness | null;
  judged_by: string;
  mode: "quick" | "full";
  input_sets: string[];
  matched: number | null;
  error_ratio: Float | null;
  stage_ms: Record<string, number>;
  timing: Timing | null;
  hot: Timing | null;
  speedup: Speedup | null;
  own_kernel_share: number | null;
  labels: string[];
  resources: Resources[];
  modelled: ModelledTime | null;
  log: string;
  seed: number | null;
  replay: number | null;
  environment: Environment;
}

export interface Diagnosis {
  evaluation: string;
  kind: string;
  summary: string;
  directive: string;
  evidence: string[];
  headroom: number | null;
}

export interface Evidence {
  task: string;
  run: string;
  candidate: string;
  source_sha: string;
  reference_sha: string;
  accepted_source_sha: string;
  evaluation: Evaluation;
  guard: Record<string, Json>;
  made_at: string;
  workbench: string;
}

export interface Budget {
  evaluations: number | null;
  seconds: number | null;
  gpu_seconds: number | null;
  tokens: number | null;
  money: number | null;
  tune: number;
}

export interface Usage {
  tokens_in: number;
  tokens_out: number;
  money: number;
  estimated: boolean;
}

export interface Proposal {
  brief: string;
  candidate: Candidate | null;
  reason: string;
  usage: Usage;
}

export interface Card {
  id: string;
  trigger: string;
  advice: string;
  effect: string;
  confidence: number;
}

// ---- inspections: `workbench/explain/inspection.py` ----------------------------------------------------------------------------

export type What = "compiler" | "memory" | "trace";

export interface Stage {
  name: string;
  text: string;
  lines: [number, number][];
  cut: boolean;
  note: string;
}

export interface CompiledLaunch {
  kernel: string;
  grid: number[];
  count: number;
  arguments: Record<string, string>;
  constexprs: Record<string, Json>;
  options: Record<string, Json>;
  warps: number;
  registers: number;
  spill_bytes: number;
  shared_bytes: number;
  occupancy: number;
  limited_by: string;
  blocks: number;
  waves: number;
  tensor_cores: boolean;
  dots: string[];
  vectors: [number, number][];
  instructions: [string, number][];
  build_ms: number;
  stages: Stage[];
}

export interface CompilerReport {
  what: "compiler";
  target: string;
  gpu: string;
  targets: string[];
  source: string;
  launches: CompiledLaunch[];
  library: string[];
  notes: string[];
}

export interface TensorMap {
  name: string;
  shape: number[];
  dtype: string;
  strides: number[];
  rows: number;
  columns: number;
  row_elements: number;
  column_elements: number;
  folded: number;
  reads: [number, number][];
  writes: [number, number][];
  touched: number;
  most_reads: number;
  most_writes: number;
}

export interface Footprint {
  tensor: string;
  reads: [number, number][];
  writes: [number, number][];
}

export interface ProgramMap {
  program: [number, number, number];
  number: number;
  footprints: Footprint[];
}

export interface AccessRow {
  line: number;
  text: string;
  op: string;
  tensor: string;
  itemsize: number;
  calls: number;
  bytes_requested: number;
  bytes_unique: number;
  requests: number;
  sectors_per_request: number;
  ideal_sectors_per_request: number;
  masked: number;
}

export interface LaunchMemory {
  kernel: string;
  grid: number[];
  programs: number;
  counted: number;
  count: number;
  tensors: TensorMap[];
  sampled: ProgramMap[];
  accesses: AccessRow[];
  note: string;
}

export interface MemoryReport {
  what: "memory";
  shapes: string;
  inputs: string[];
  launches: LaunchMemory[];
  notes: string[];
}

export type TimeKind = "measured" | "modelled" | "host";

export interface Slice {
  name: string;
  start_us: number;
  us: number;
  track: string;
  own: boolean;
  parts: Record<string, number>;
  figures: Record<string, number>;
}

export interface KernelRow {
  name: string;
  calls: number;
  total_us: number;
  share: number;
  own: boolean;
  bytes: number | null;
}

export interface Timeline {
  name: string;
  kind: TimeKind;
  total_us: number;
  slices: Slice[];
  kernels: KernelRow[];
  left_out: number;
  note: string;
}

export interface Metric {
  kernel: string;
  name: string;
  value: number;
  unit: string;
  meaning: string;
}

export interface TraceReport {
  what: "trace";
  measured: boolean;
  timelines: Timeline[];
  file: string;
  metrics: Metric[];
  metrics_note: string;
  notes: string[];
}

export type Report = CompilerReport | MemoryReport | TraceReport;

// ---- events: the bodies of `Stamped` by type ---------------------------------------------------------------------------------

export interface RunStarted {
  task: Json;
  budget: Budget;
  seed: number;
  proposers: string[];
  cell: string;
  cell_source: string;
  elites_of: string;
  elites: Candidate[];
  experts: string[];
  device: string;
  mechanisms: Json;
  accept_degenerate: boolean;
}

export interface Prepared {
  floor_us: number;
  baselines: Baseline[];
  device: string;
  environment: Environment;
  notes: string[];
  degenerate: string;
  qualification: Json;
  inductor: string;
}

export interface Asked {
  brief: Json;
}

export interface Proposed {
  proposal: Proposal;
}

export interface Evaluated {
  brief: string;
  evaluation: Evaluation;
  diagnosis: Diagnosis | null;
}

export interface BestChanged {
  candidate: string;
  evaluation: string;
  time_us: number;
}

export interface Migrated {
  candidate: string;
  source: string;
  to: string;
}

export interface Acted {
  verb: string;
  argument: string;
}

export interface Submitted {
  candidate: Candidate;
}

export interface StateChanged {
  state: RunState;
  reason: string;
}

export interface Spent {
  spent: Budget;
}

export interface Noted {
  message: string;
  level: string;
}

export interface AcceptedCandidate {
  evidence: Evidence;
  code: string;
  place: string;
}

export interface Ended {
  reason: string;
  best: string;
}

// ---- the board: what Python shows ---------------------------------------------------------------------------------------------

/** One line of the table: one candidate with its best evaluation, or its first one where none is right. */
export interface Row {
  id: string;
  backend: string;
  kind: string;
  verdict: Verdict | "proposed";
  reason: string;
  evaluations: number;
  judged_by: string;
  time_us: number | null;
  low_us: number | null;
  high_us: number | null;
  modelled: boolean;
  speedup: number | null;
  against: string;
  diagnosis: string;
  island: string;
  proposer: string;
  plan: string;
  parents: string[];
  parameters: Record<string, Json>;
  labels: string[];
  order: number;
  accepted: boolean;
}

export interface Tensor {
  name?: string;
  shape: number[];
  dtype: string;
  role?: string;
}

export interface Best {
  id: string;
  time_us: number;
  low_us: number;
  high_us: number;
  modelled: boolean;
  speedup: Speedup | null;
}

export interface Header {
  run: string;
  name: string;
  state: RunState;
  reason: string;
  target: string;
  device: string;
  modelled: boolean;
  precision: string;
  inputs: Tensor[];
  outputs: Tensor[];
  bytes: number;
  flops: number;
  floor_us: number | null;
  eager: Baseline | null;
  compile: Baseline | null;
  best: Best | null;
  budget: Budget;
  spent: Budget;
  islands: { name: string; aim: string }[];
  proposers: string[];
  hints: string[];
  bans: string[];
  pinned: string;
  evaluations: number;
  candidates: number;
  cell: string;
  live: boolean;
  notes: string[];
  started_at: number;
}

/** One evaluation on the chart; `n` counts them from 1. */
export interface Point {
  n: number;
  evaluation: string;
  candidate: string;
  verdict: Verdict;
  time_us: number | null;
  modelled: boolean;
}

/** One happening of the run, in words. `seq` is the event's own number. */
export interface LogLine {
  seq: number;
  time: number;
  level: string;
  text: string;
  candidate: string;
}

export interface Detail {
  candidate: Candidate;
  evaluations: Evaluation[];
  diagnoses: Record<string, Diagnosis>;
  brief: { id: string; kind: string; directive: string; island: string; expert: Json; hints: string[]; bans: string[] };
  children: string[];
  /** Id of the evaluation that stands for the variant; empty while it is being judged. */
  shown: string;
}

/** The roofline of the op on its target: rates per second, and the least bytes and FLOPs. */
export interface Roof {
  gpu: string;
  bandwidth: number;
  l2_bandwidth: number;
  plain: number;
  products: number | null;
  products_dtype: string;
  bytes: number;
  flops: number;
  launch_us: number;
  shared_bytes: number;
  registers: number;
  warps: number;
}

export interface AskedParent {
  id: string;
  evaluation: string;
  verdict: Verdict;
  time_us: number | null;
  modelled: boolean;
  diagnosis: string;
}

/** A brief as the Prompt tab shows it. */
export interface AskedBrief {
  id: string;
  kind: string;
  candidate: string;
  island: string;
  aim: string;
  advice: string[];
  directive: string;
  expert: Record<string, Json>;
  experts: string[];
  parameters: Record<string, Json>;
  parents: AskedParent[];
  cards: Card[];
  hints: string[];
  bans: string[];
  left: Budget;
  seed: number;
}

export interface PromptMessageText {
  role: string;
  content: string;
  /** Estimated, whatever the endpoint counted. */
  tokens: number;
}

/** One stored call to a model. `estimated` tells whether its tokens were counted here, not by the endpoint. */
export interface ModelCall {
  number: number;
  purpose: string;
  model: string;
  why: string;
  attempt: number;
  messages: PromptMessageText[];
  settings: Record<string, Json>;
  reply: string;
  finish: string;
  tokens_in: number;
  tokens_out: number;
  cached: number;
  estimated: boolean;
  money: number | null;
  seconds: number;
  first_seconds: number | null;
  error: string;
  time: number;
}

export interface Prompt {
  brief: AskedBrief | null;
  calls: ModelCall[];
  /** What a model would have been asked, where none was; else `unrendered` says why there is no prompt. */
  rendered: PromptMessageText[];
  unrendered: string;
  cited: { id: string; kind: "expert" | "card" | "other"; text: string }[];
  choices: { expert: string; rows: { name: string; chosen: Json; values: Json[]; why: string }[] } | null;
}

/** An answer that a model is writing. `at` is where in it `text` begins. */
export interface Writing {
  brief: string;
  model: string;
  why: string;
  seconds: number;
  at: number;
  text: string;
  failed: string;
}

// ---- messages from Python ----------------------------------------------------------------------------------------------------

/** What changed. `seq` counts deltas; a gap means that one was lost, and the browser asks for a snapshot. */
export interface DeltaMessage {
  type: "delta";
  seq: number;
  upserts: Row[];
  points: Point[];
  log: LogLine[];
  header: Header;
}

/** Everything that the board shows, as of delta `seq`. `texts` are what variants are compared with. */
export interface SnapshotMessage {
  type: "snapshot";
  seq: number;
  upserts: Row[];
  points: Point[];
  log: LogLine[];
  header: Header;
  texts: { reference: string; cell: string };
  roof: Roof | null;
}

/**
 * Many objects of one kind as columns, one a field: ten thousand rows are a tenth of what they are as objects. Numbers and the places in
 * lists of values lie in buffers beside the message, named by number.
 */
export interface Packed {
  count: number;
  fields: Record<string, Column>;
}

export type Column =
  | { kind: "same"; value: Json }
  | { kind: "plain"; values: Json[] }
  /** Little-endian doubles; NaN stands for null. */
  | { kind: "numbers"; buffer: number }
  /** Little-endian numbers of so many bytes. */
  | { kind: "whole"; buffer: number; bytes: Width }
  /** The values that there are, and for each object which: numbers as above. */
  | { kind: "choice"; values: Json[]; buffer: number; bytes: Width }
  /** UTF-8, a line for each object; lists of texts have tabs between these. */
  | { kind: "texts"; buffer: number }
  | { kind: "lists"; buffer: number };

export type Width = 1 | 2 | 4;

/** A snapshot as it travels. */
export interface PackedMessage {
  type: "packed";
  seq: number;
  upserts: Packed;
  points: Packed;
  log: LogLine[];
  header: Header;
  texts: { reference: string; cell: string };
  roof: Roof | null;
}

export interface DetailMessage {
  type: "detail";
  id: string;
  detail: Detail | null;
  error: string;
}

export interface PromptMessage {
  type: "prompt";
  id: string;
  prompt: Prompt | null;
  error: string;
}

/** All answers that models are writing now; those that are missing have ended. */
export interface WritingMessage {
  type: "writing";
  answers: Writing[];
}

/** The outcome of an inspection. Only the view that sent `request` shows it. */
export interface InspectionMessage {
  type: "inspection";
  request: string;
  stage: "ready" | "failed";
  message: string;
  report: Report | null;
}

/** A file that was asked for; its bytes travel beside the message. */
export interface FileMessage {
  type: "file";
  request: string;
  name: string;
  error: string;
}

/** The editors, an ES module whose bytes travel beside the message, or why there are none. Only the view that sent `request` takes them. */
export interface EditorsMessage {
  type: "editors";
  request: string;
  error: string;
}

/** The answer to a verb: one line for people. Only the view that sent `request` shows it. */
export interface SaidMessage {
  type: "said";
  request: string;
  level: "info" | "error";
  text: string;
}

/** The progress of an accept. Only the view that sent `request` applies the code. `consent`: it is refused, and would not be with consent. */
export interface AcceptMessage {
  type: "accept";
  request: string;
  id: string;
  place: Place;
  stage: "judging" | "ready" | "refused";
  message: string;
  code: string;
  cell: string;
  expected_hash: string;
  provenance: Record<string, Json>;
  widget: string;
  consent: boolean;
}

export type FromPython =
  | DeltaMessage
  | SnapshotMessage
  | PackedMessage
  | DetailMessage
  | PromptMessage
  | WritingMessage
  | InspectionMessage
  | FileMessage
  | EditorsMessage
  | SaidMessage
  | AcceptMessage;

// ---- messages from the browser ------------------------------------------------------------------------------------------------

export type Place = "below" | "replace";
export type Verb = "step" | "auto" | "pause" | "resume" | "stop" | "cancel" | "hint" | "ban" | "pin" | "branch" | "submit";

/** `view` names the view that asks. */
export interface SnapshotRequest {
  type: "snapshot";
  view: string;
}

/** A view is closed. Where none is left, nothing is sent until one asks for a snapshot. */
export interface GoneRequest {
  type: "gone";
  view: string;
}

export interface DetailRequest {
  type: "detail";
  id: string;
}

export interface PromptRequest {
  type: "prompt";
  id: string;
}

/** Asks for everything that is being written, from its beginning. */
export interface WritingRequest {
  type: "writing";
}

export interface InspectRequest {
  type: "inspect";
  request: string;
  evaluation: string;
  what: What;
  options: Record<string, string>;
}

/** Nobody waits for that inspection any more. */
export interface LeaveRequest {
  type: "leave";
  request: string;
}

/** Asks for the file that an inspection named. */
export interface SaveRequest {
  type: "save";
  request: string;
}

/** Asks for the editors that were built with this board; `hash` is their SHA-256. */
export interface EditorsRequest {
  type: "editors";
  request: string;
  hash: string;
}

/** `argument` is the text, id or source; `option` is the judged variant that a submitted source was made from, or the island that
 * a hint is for. */
export interface DoRequest {
  type: "do";
  request: string;
  verb: Verb;
  argument: string;
  option: string;
}

export interface AcceptRequest {
  type: "accept";
  request: string;
  id: string;
  place: Place;
  consent: boolean;
}

/** The browser's acknowledgement: the notebook was changed, or why not. Hashes are SHA-256 of the cell's source. */
export interface AppliedRequest {
  type: "applied";
  request: string;
  id: string;
  ok: boolean;
  place: Place;
  cell: string;
  before: string;
  after: string;
  reason: string;
}

export type FromBrowser =
  | SnapshotRequest
  | GoneRequest
  | DetailRequest
  | PromptRequest
  | WritingRequest
  | InspectRequest
  | LeaveRequest
  | SaveRequest
  | EditorsRequest
  | DoRequest
  | AcceptRequest
  | AppliedRequest;
