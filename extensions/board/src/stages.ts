/** The compiler's stages: their names. */

export const STAGES: Record<string, { name: string; about: string }> = {
  cuda: { name: "CUDA", about: "The CUDA C++ source." },
  ttir: { name: "TTIR", about: "Triton's own operations on whole blocks, before anything is laid out over threads." },
  ttgir: { name: "TTGIR", about: "The same with layouts: which thread holds which elements, and where they are exchanged through shared memory." },
  llir: { name: "LLIR", about: "LLVM's code of one thread." },
  ptx: { name: "PTX", about: "NVIDIA's portable assembly: registers are not assigned yet." },
  sass: { name: "SASS", about: "What the GPU executes, with real registers." },
  amdgcn: { name: "AMDGCN", about: "AMD's assembly: what the GPU executes." },
};
