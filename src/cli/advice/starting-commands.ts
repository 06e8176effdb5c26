/** Proposes the commands that let targets of an open plan start. */
import { type StoppedStart, stoppedStarts } from '../../engine/explain/situations.ts';
import { planReference } from '../../engine/model/plan-reference.ts';
import type { ShownPlan } from '../status/json-form.ts';
import * as sentences from '../status/sentences.ts';
import type { NamedPlan } from './plan-flag.ts';

/** The most commands that the output proposes. */
const MOST_PROPOSED = 4;

/** Returns a line with the commands that let targets of the plan start; no line if there are none. */
export function startsOf(plan: ShownPlan): string[] {
  const found = stoppedStarts({
    phase: plan.phase,
    cause: plan.reasonCode === undefined ? undefined : { code: plan.reasonCode },
    abort: plan.abort,
    paused: plan.paused,
    waits: plan.waits,
    targets: sentences.targetsOf(plan),
  });
  const commands = new Set(found.map((each) => startingCommand(plan, each)));
  return commands.size === 0 ? [] : [[...commands].slice(0, MOST_PROPOSED).join(', ')];
}

/** Returns the command that ends the situation. */
export function startingCommand(plan: NamedPlan, situation: StoppedStart): string {
  const name = planReference(plan);
  switch (situation.kind) {
    case 'CordonedByOthers':
      return `kubectl uncordon ${situation.nodes.join(' ')}`;
    case 'WaveUnapproved':
      return `refit approve ${name} --wave ${situation.wave}`;
    case 'Held':
      return `refit unhold ${situation.target}`;
    case 'WindowClosed':
      return `refit start ${name} --now --for 2h`;
    case 'Blackout':
      return `refit start ${name} --now --for 2h --blackouts`;
  }
}
