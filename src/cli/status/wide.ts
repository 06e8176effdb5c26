/** Owns the table of `refit status -o wide`: one line for each target, with versions and reasons. */

import type { Wait } from '../../engine/model/decided.ts';
import { age } from '../phrases.ts';
import { table } from '../table.ts';
import type { PlanView, TargetView } from './view.ts';

export function renderTargets({ stages, waits }: PlanView, now: number): string[] {
  const holding = new Map(waits.map((wait) => [wait.target, wait]));
  const rows = stages.flatMap(({ role, version, targets }) =>
    targets.map((target) => [
      target.name,
      role,
      target.phase === 'working' ? (target.step ?? 'working') : target.phase,
      age(target.since, now),
      target.from ?? '-',
      version,
      reasonOf(target, holding.get(target.name)),
    ]),
  );
  return rows.length === 0 ? [] : table(['TARGET', 'ROLE', 'STEP', 'FOR', 'FROM', 'TO', 'REASON'], rows);
}

/** That a target is at its step stands in the line already. */
function reasonOf({ failure, phase, step }: TargetView, wait: Wait | undefined): string {
  if (failure !== undefined) return failure;
  if (phase === 'failed') return step === undefined ? 'gave up' : `gave up at ${step}`;
  if (phase === 'done' || wait === undefined || wait.reason.code === 'InFlight') return '';
  return wait.reason.message;
}
