/** The words of the board, each explained once. Tooltips and details read from here. */

export const WORDS = {
  island:
    "Island: a group of variants that evolves on its own with one aim, so that the search does not put all its eggs in one basket. The best ones migrate now and then.",
  floor:
    "Floor: the least time physics allows on this GPU. Each input is read once and each output written once at full bandwidth, or the arithmetic runs at its peak, whichever takes longer. Nothing honest is faster.",
  modelled:
    "Modelled: no GPU has run this. The time is computed from the compiled kernel, the bytes it moves and this GPU's table. It ranks variants; it is not a measurement and never a speedup.",
  measured: "Measured: run on this GPU with cold caches. The median, with the interval that holds it with 95 % confidence.",
  eager: "Eager: the op as it is in the notebook today, each PyTorch call its own kernel.",
  compile: "torch.compile: the same op through PyTorch's own compiler. Variants are compared with the faster of the two.",
  best: "Best so far: the fastest variant that the judge found right on every input set.",
  budget: "Budget: hard caps on this run. It ends by itself when one is used up.",
  judged: "Judged by: what ran the variant. Without a GPU that is Triton's interpreter at shrunken shapes (given in brackets).",
  verdict: "Verdict: what the judge says. It trusts no variant: each is built, run in a sandbox and compared with the reference.",
  witness: "Witness: one place where the result differs, with what is needed to see it again.",
  headroom: "Headroom: time over floor. 1× would be as fast as physics allows.",
  occupancy: "Occupancy: resident warps over the most that one multiprocessor can hold. Low occupancy can leave memory latency unhidden.",
  spills: "Spills: registers that did not fit and went to memory, in bytes per thread. Anything but 0 costs time.",
  registers: "Registers: per thread. Many mean few resident warps.",
  shared: "Shared memory: per program, the on-chip scratchpad.",
  waves: "Waves: programs over those that fit on the card at once. Just above a whole number leaves most of the last wave idle.",
  vector: "Vector: the widest global load or store of one thread, in bytes. 16 is the best the hardware has.",
  lineage: "Lineage: the variant that this one was made from.",
  plan: "Plan: what the proposer set out to do.",
  proposer: "Proposer: who wrote it. Built-in experts, a language model, or you.",
  against: "Baseline time over this variant's time, measured. Modelled times have none.",
  modelledShare: "Share of the modelled eager time. Both are modelled, so it is no speedup.",
  step: "Step: judge one more variant, then wait.",
  auto: "Auto: go on by itself until the budget ends, or you pause or stop.",
  pause: "Pause: no new variants; the one being judged finishes. Resume goes on.",
  resume: "Resume: go on where the run was paused.",
  stop: "Stop: finish the variant being judged, then end the run.",
  cancel: "Cancel: kill the variant being judged and end the run now.",
  hint: "Hint: a sentence that every further proposal gets to read, such as “keep the row in registers”.",
  ban: "Ban: an idea that must not be proposed again, such as “no split reductions”.",
  pin: "Pin: keep this variant as a parent, whatever its time.",
  branch: "Branch: the next proposals start from this variant.",
} as const;

export type Word = keyof typeof WORDS;
