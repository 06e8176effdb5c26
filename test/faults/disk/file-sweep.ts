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

/** The names of the faults in the tables of docs/reference/lab.md. */
export const NAMES_OF_FAULTS: Readonly<Record<DiskFault, string>> = {
  crash: 'crash of the agent',
  EIO: 'disk error (EIO)',
  ENOSPC: 'full disk (ENOSPC)',
  nothing: 'power failure without loss of data',
  everything: 'power failure with loss of all unsynced data',
  contents: 'power failure with loss of unsynced contents, but not of file names',
};

export function nameOfTrial({ point: { nth, operation, file }, fault }: FileTrial): string {
  return `${NAMES_OF_FAULTS[fault]} at ${operation} ${file} (#${nth})`;
}

/** Reports whether the work ended with an allowed result, and no violation was found at the end or at any boot before. */
export function isFineOnDisk({ end, reason, violations }: DiskVerdict): boolean {
  return violations.length === 0 && (end === 'Completed' || (end !== 'stuck' && reason !== ''));
}
