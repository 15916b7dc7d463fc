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
export type RunState = "preparing" | "waiting" | "running" | "paused" | "stopping" | "ended";
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
}

export interface Prepared {
  floor_us: number;
  baselines: Baseline[];
  device: string;
  environment: Environment;
  notes: string[];
  degenerate: string;
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
}

export interface DetailMessage {
  type: "detail";
  id: string;
  detail: Detail | null;
  error: string;
}

/** The answer to a verb: one line for people. Only the view that sent `request` shows it. */
export interface SaidMessage {
  type: "said";
  request: string;
  level: "info" | "error";
  text: string;
}

/** The progress of an accept. Only the view that sent `request` applies the code. */
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
}

export type FromPython = DeltaMessage | SnapshotMessage | DetailMessage | SaidMessage | AcceptMessage;

// ---- messages from the browser ------------------------------------------------------------------------------------------------

export type Place = "below" | "replace";
export type Verb = "step" | "auto" | "pause" | "resume" | "stop" | "cancel" | "hint" | "ban" | "pin" | "branch" | "submit";

export interface SnapshotRequest {
  type: "snapshot";
}

export interface DetailRequest {
  type: "detail";
  id: string;
}

/** `argument` is the text, id or source; `option` is the backend of a submitted source. */
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

export type FromBrowser = SnapshotRequest | DetailRequest | DoRequest | AcceptRequest | AppliedRequest;
