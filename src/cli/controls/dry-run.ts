/** Defines the option `--dry-run`, with which a command says what it would write, and stores nothing. */

/** With `server`, the API server checks the write and stores nothing, as with kubectl. With `client`, the write is not sent. */
export type DryRun = 'server' | 'client';

export interface DryRunFlags {
  readonly dryRun?: DryRun;
}

/** Returns the line that says that nothing was written; no line without a dry run. */
export function dryRunLines({ dryRun }: DryRunFlags): string[] {
  if (dryRun === undefined) return [];
  return dryRun === 'server'
    ? ['Nothing was written: this was a dry run, which the API server checked.']
    : ['Nothing was written: this was a dry run on this machine alone.'];
}
