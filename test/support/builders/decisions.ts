/** The complete decision of the leader about a snapshot in one value, for tests that check several parts of a turn. */

import { settle } from '../../../src/engine/assess/advance.ts';
import { assess } from '../../../src/engine/assess/assess.ts';
import { type Needs, needsOf } from '../../../src/engine/assess/needs.ts';
import { type Explanation, explain } from '../../../src/engine/explain/explain.ts';
import { factsOf } from '../../../src/engine/gates/types.ts';
import type { NodeAction, Signalling } from '../../../src/engine/model/decision.ts';
import type { Rollout } from '../../../src/engine/model/rollout.ts';
import type { Snapshot } from '../../../src/engine/model/snapshot.ts';
import type { RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import { nodeActionsOf } from '../../../src/engine/turn/choose-node-actions.ts';
import { commandsFor } from '../../../src/engine/turn/commands.ts';

export interface Decision extends Explanation, Needs {
  /**
   * The rollout to record now or later; undefined if nothing has changed. If it is set, there are no signals and no
   * node actions.
   */
  readonly record: Rollout | undefined;
  readonly signals: readonly Signalling[];
  readonly nodeActions: readonly NodeAction[];
}

export function decide(snapshot: Snapshot, policy: RolloutPolicy, now: number): Decision {
  const assessment = assess(snapshot, policy, now);
  const settled = settle(assessment);
  const said = { ...explain(settled), ...needsOf(settled) };
  if (settled !== assessment)
    return { ...said, record: settled.snapshot.rollout, signals: [], nodeActions: [] };
  return {
    ...said,
    record: undefined,
    signals: commandsFor(assessment).flatMap((command) =>
      command.kind === 'signal' ? [command.signalling] : [],
    ),
    nodeActions: nodeActionsOf(assessment).filter(
      ({ target }) => factsOf(snapshot, target).refusal === undefined,
    ),
  };
}
