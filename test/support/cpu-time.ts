/** Measures work by the CPU time of this process: a busy machine makes it wait longer, but not work more. */

export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
