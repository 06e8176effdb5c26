/**
 * Tries every disk fault at every file operation of the work, with one run for each fault at each operation. A run in
 * which no fault occurs finds the operations.
 */
import { FIRST_BUNDLE, THIRD_BUNDLE } from './bundle-works.ts';
import { type DiskFault, type DiskVerdict, type FilePoint, runDisk } from './disk-run.ts';
import { type DiskWork, ROLL_BACK, UPDATE } from './disk-works.ts';
import type { PayloadServer } from './payload-server.ts';
import { LOSSES } from './sunken-files.ts';

export const WORKS: readonly DiskWork[] = [UPDATE, ROLL_BACK, FIRST_BUNDLE, THIRD_BUNDLE];

export interface FileTrial {
  readonly work: DiskWork;
  readonly point: FilePoint;
  readonly fault: DiskFault;
}

const READS = ['open r', 'read', 'readFile', 'lstat', 'stat', 'rm'];

/**
 * Returns the trials of the work. A full disk never makes a read or the removal of a name fail, so these operations get
 * no ENOSPC.
 */
export async function fileTrials(work: DiskWork, server: PayloadServer): Promise<FileTrial[]> {
  const { points, end, violations } = await runDisk({ work, server });
  if (end !== work.end || violations.length > 0)
    throw new Error(`without faults: ${end} ${violations.join(', ')}`);
  return points.flatMap((point) => {
    const full: readonly DiskFault[] = READS.includes(point.operation) ? [] : ['ENOSPC'];
    return (['crash', ...full, 'EIO', ...LOSSES] as const).map((fault) => ({ work, point, fault }));
  });
}

export async function tryFile(
  { work, point, fault }: FileTrial,
  server: PayloadServer,
): Promise<DiskVerdict> {
  return await runDisk({ work, server, fault: { nth: point.nth, kind: fault } });
}

export function nameOfFault(fault: DiskFault): string {
  if (fault === 'crash') return 'crash of the agent';
  if (fault === 'EIO') return 'disk error (EIO)';
  return fault === 'ENOSPC' ? 'full disk (ENOSPC)' : fault;
}
export function nameOfTrial({ point: { nth, operation, file }, fault }: FileTrial): string {
  return `${fault} at ${operation} ${file} (#${nth})`;
}

/** Reports whether the work ended with an allowed result, and no violation was found at the end or at any boot before. */
export function isFineOnDisk({ end, reason, violations }: DiskVerdict): boolean {
  return violations.length === 0 && (end === 'Completed' || (end !== 'stuck' && reason !== ''));
}
