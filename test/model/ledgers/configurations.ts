/** Owns the plans with ledgers that are explored: the small ones in every test run, the large ones on demand. */
import type { Exploration } from '../explorer.ts';
import { row } from '../safety-page.ts';
import { countOf, qualitiesOf } from '../works/configurations.ts';
import type { LedgerConfiguration } from './ledgers-world.ts';

export interface NamedLedgerConfiguration extends LedgerConfiguration {
  readonly name: string;
}

export function configureLedgers(
  targets: string,
  slots: number,
  faults: number,
  leaders = 2,
): NamedLedgerConfiguration {
  const workers = qualitiesOf(targets);
  const name = `${countOf(workers, 'workers')}, ${slots} at once, ${leaders} leaders`;
  return { name, workers, slots, faults, leaders };
}

export const LEDGER_CONFIGURATIONS: readonly NamedLedgerConfiguration[] = [
  configureLedgers('w1 w2', 1, 1),
  configureLedgers('w1 w2', 2, 1),
  configureLedgers('w1 w2', 2, 0, 3),
  configureLedgers('w1 w2:bad', 2, 0),
  configureLedgers('w1 w2 w3', 1, 0),
];

/** Explored by `npm run safety` alone. */
export const LARGE_LEDGER_CONFIGURATIONS: readonly NamedLedgerConfiguration[] = [
  configureLedgers('w1 w2 w3', 1, 1),
  configureLedgers('w1 w2 w3', 2, 1),
  configureLedgers('w1 w2:bad w3', 2, 0),
];

export const LEDGER_HEAD = ['| plan with ledgers | faults | states | transitions |', '|---|---|---|---|'];

export function ledgerRow({ name, faults }: NamedLedgerConfiguration, { states, transitions }: Exploration): string {
  return row(name, faults, ...[states, transitions].map((count) => count.toLocaleString('en')));
}
