/**
 * Describes what an edit of a running plan changes, and for which targets. Each edit is described
 * once.
 */
import { isDeepStrictEqual } from 'node:util';
import { listed } from '../../util/phrases.ts';
import { because, type Reason } from '../model/reasons.ts';
import { inState, type Rollout, type Stage, shownRole } from '../model/rollout.ts';
import type { Turn } from './turn.ts';

interface Seen {
  readonly generation: number | undefined;
  readonly rollout: Rollout;
}

/**
 * Remembers the last observed state of each running plan. If no leader watches during an edit, for example during a
 * failover, the edit is not reported.
 */
export function editMemory() {
  const seen = new Map<string, Seen>();
  return {
    /** Returns what the edit changes; undefined if the plan was not edited since it was seen last. */
    at(key: string, { plan, assessment: { snapshot } }: Turn): Reason | undefined {
      const { rollout } = snapshot;
      const { canIgnoreEdits } = snapshot.abilities;
      const before = seen.get(key);
      if (rollout.phase !== 'running' || !canIgnoreEdits) {
        seen.delete(key);
        return undefined;
      }
      const { generation } = plan.metadata;
      seen.set(key, { generation, rollout });
      if (before === undefined || before.generation === generation) return undefined;
      return because(
        'EditedWhileRunning',
        `edited while it runs; ${effectsOf(before.rollout, rollout)}`,
      );
    },
    forget: (key: string) => seen.delete(key),
  };
}

/** Returns clauses that say which effect the edit has. */
function effectsOf(before: Rollout, after: Rollout): string {
  const { id, editedId } = after;
  if (editedId === undefined || editedId === before.editedId) return effectOf(before, after);
  const renamed = `this run is still ${id}, and only a later run gets the id ${editedId}`;
  return `${effectOf(before, after)}; ${renamed}`;
}

/** Returns a clause that says which effect the edit has on the nodes. */
function effectOf(before: Rollout, after: Rollout): string {
  if (after.ignoresEdits === true)
    return 'the edit takes no effect before the plan has ended, because the policy has edits.whileRunning: Ignore';
  const [problem] = after.problems;
  if (problem) return `no node starts until it is corrected: ${problem.message}`;
  const changes = after.stages.flatMap((stage) => {
    const earlier = before.stages.find(({ id }) => id === stage.id);
    return earlier === undefined ? [] : changesOf(earlier, stage);
  });
  return changes.length === 0
    ? 'the edit takes no effect: a plan keeps the nodes that it started with'
    : `this takes effect: ${changes.join('; ')}`;
}

/** Returns the changes of one stage, as sentences without a full stop. */
function changesOf(before: Stage, after: Stage): string[] {
  const where = `${shownRole(after)}s of spec.commands[${after.command}]`;
  const limit = `${where}: ${after.maxInFlight} at a time instead of ${before.maxInFlight}`;
  const limits = before.maxInFlight === after.maxInFlight ? [] : [limit];
  const work = [
    before.version === after.version ? [] : `version ${after.version} instead of ${before.version}`,
    isDeepStrictEqual(before.payloads, after.payloads) ? [] : 'other downloads',
    before.forced === after.forced ? [] : `forceupdate: ${after.forced}`,
  ].flat();
  // A stage without targets has no work, so nothing changes for anybody.
  if (before.targets.length === 0) return [];
  if (work.length === 0) return limits;
  // Only pending nodes are named. Nodes that have started keep the instructions from their signals.
  const names = inState(before, 'pending').map(({ name }) => name);
  const forWhom =
    names.length === 0 ? 'for no node, because all nodes have started' : `for ${listed(names)}`;
  return [`${where}: ${work.join(', ')}, ${forWhom}`, ...limits];
}
