/** Owns the sweep over files: one run for each fault at each operation that an update without faults makes. */
import { type DiskFault, type DiskVerdict, type FilePoint, runDisk } from './disk-run.ts';
import { LOSSES } from './sunken-files.ts';

export interface FileTrial {
  readonly point: FilePoint;
  readonly fault: DiskFault;
}

const READS = ['open r', 'read', 'readFile', 'lstat', 'rm'];

/** No disk is too full to be read, or to lose a name. */
export async function fileTrials(url: string, isDead: boolean): Promise<FileTrial[]> {
  const { points, end, violations } = await runDisk({ url, isDead });
  const wanted = isDead ? 'Failed' : 'Completed';
  if (end !== wanted || violations.length > 0) throw new Error(`without faults: ${end} ${violations.join(', ')}`);
  return points.flatMap((point) => {
    const full: readonly DiskFault[] = READS.includes(point.operation) ? [] : ['ENOSPC'];
    return (['crash', ...full, 'EIO', ...LOSSES] as const).map((fault) => ({ point, fault }));
  });
}

export async function tryFile({ point, fault }: FileTrial, url: string, isDead: boolean): Promise<DiskVerdict> {
  return await runDisk({ url, isDead, fault: { nth: point.nth, kind: fault } });
}

export function nameOfTrial({ point: { nth, operation, file }, fault }: FileTrial): string {
  return `${fault} at ${operation} ${file} (#${nth})`;
}

/** True where the work came to an end that it may come to, and nothing was wrong then or at any boot on the way. */
export function isFineOnDisk({ end, reason, violations }: DiskVerdict): boolean {
  return violations.length === 0 && (end === 'Completed' || (end !== 'stuck' && reason !== ''));
}
