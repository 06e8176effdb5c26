/** The option `--dry-run`: a command says what it would write, and nothing is stored. */

/** With `server` the API server checks the write, as kubectl asks it to. With `client` nothing is sent. */
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
