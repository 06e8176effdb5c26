/**
 * Proves when the annotation that orders a new run of an ended plan counts, and what is written to the plan together
 * with the annotation.
 */
import { describe, expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
} from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import { annotated, withoutAnnotations } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import { ABORT_ANNOTATION } from '../model/controls.ts';
import { ROLLS_BACK_ANNOTATION, ROLLS_BACK_REASON_ANNOTATION } from '../model/earlier-versions.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import { RESTART_ANNOTATION, type RecordedRun, withOrder } from '../model/runs.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../policy/rollout-policy.ts';
import { OwnWrites } from '../snapshot/world.ts';
import { orderRestart, orderRollBack, withRunBegun } from './restart.ts';

const NOW = 1234;
const RESTARTS: RolloutPolicy = { ...DEFAULT_POLICY, restartsEdited: true };
const ENDED = buildRollout([buildStage('worker', [buildTarget('w1', 'done')])], {
  phase: 'done',
});

/** The annotation in which this dialect records the last run. */
const RECORD = 'example.com/record';

function withoutRecord(plan: TablePlan): TablePlan {
  return withoutAnnotations(plan, RECORD);
}

function rerunning(recorded?: RecordedRun): Dialect<TablePlan> {
  return {
    ...tableDialect,
    reruns: { recordOf: () => recorded, withoutRecord, askedOf: () => undefined },
  };
}

/** Returns an ended plan whose generation is 3. */
function endedPlan(status: Rollout = ENDED): TablePlan {
  const plan = buildTablePlan({ workers: ['w1'] });
  const metadata = { ...plan.metadata, generation: 3, annotations: { [RECORD]: 'kept' } };
  return { ...plan, metadata, status };
}

describe('a run that is ordered', () => {
  const begins = (
    plan: TablePlan,
    policy: RolloutPolicy = RESTARTS,
    dialect: Dialect<TablePlan> = rerunning(),
  ): boolean => {
    const seen = withRunBegun(
      { dialect, world: buildWorld([], []) },
      plan,
      policy,
      NOW,
    ) as TablePlan;
    if (seen === plan) return false;
    expect(seen).toEqual(withoutRecord(plan));
    return true;
  };
  const ordered = withOrder(endedPlan(), 3);

  test('begins without the record of the run before', () => {
    expect(begins(ordered)).toBe(true);
    expect(begins(ordered, RESTARTS, rerunning({ run: 2, generation: 2 }))).toBe(true);
  });

  test.each<[string, TablePlan]>([
    ['was not ordered', endedPlan()],
    ['was ordered for an earlier generation', withOrder(endedPlan(), 2)],
    ['was ordered, and aborted since', annotated(ordered, { [ABORT_ANNOTATION]: 'no' })],
    ['follows one that still runs', withOrder(endedPlan({ ...ENDED, phase: 'running' }), 3)],
    [
      'follows one whose record cannot be read',
      withOrder(endedPlan({ ...ENDED, unread: because('TargetRefused', 'it has no phase') }), 3),
    ],
  ])('does not begin if it %s', (_what, plan) => {
    expect(begins(plan)).toBe(false);
  });

  test('does not begin twice, and not where the policy or the dialect knows no second run', () => {
    expect(begins(ordered, RESTARTS, rerunning({ run: 3, generation: 3 }))).toBe(false);
    expect(begins(ordered, DEFAULT_POLICY)).toBe(false);
    expect(begins(ordered, RESTARTS, tableDialect)).toBe(false);
  });

  test('begins to roll back a run of the same plan, if the policy rolls back', () => {
    const rollingBack = (run: string): TablePlan =>
      annotated(ordered, { [ROLLS_BACK_ANNOTATION]: run });
    const policy = { ...DEFAULT_POLICY, rollsBackOnFailure: true };
    expect(begins(rollingBack('plan-uid/run-1'), policy)).toBe(true);
    expect(begins(rollingBack('plan-uid-2/run-1'), policy)).toBe(false);
    expect(begins(rollingBack('plan-uid/run-1'), DEFAULT_POLICY)).toBe(false);
    expect(begins(ordered, policy)).toBe(false);
  });
});

class Scene {
  readonly api = new MemoryApi();
  readonly ownWrites = new OwnWrites();
  readonly abort = new AbortController().signal;
  dialect = rerunning();

  constructor(plan: TablePlan) {
    this.api.put(tableDialect.plans, plan);
  }

  get plan(): TablePlan {
    return this.api.read(tableDialect.plans, 'plan');
  }

  get effects() {
    const { api, dialect, ownWrites, abort } = this;
    return { dialect, client: api.client, world: buildWorld([], []), ownWrites, abort };
  }

  get annotations() {
    return this.plan.metadata.annotations;
  }

  /** Lets another client write the plan first. */
  conflict(): void {
    this.api.before('replace plans', () => {
      throw refusal(409, 'Conflict');
    });
  }

  knows(plan: TablePlan): boolean {
    return this.ownWrites.isFresh(plan);
  }
}

describe('the order of a restart', () => {
  test('names the generation of the edit, and takes the record away', async () => {
    const scene = new Scene(endedPlan());
    expect(await orderRestart(scene.effects, scene.plan)).toBe(true);
    expect(scene.annotations).toEqual({ [RESTART_ANNOTATION]: '{"generation":3}' });
    expect(scene.knows(scene.plan)).toBe(true);
  });

  test('leaves the plan as it is where the dialect has no second run', async () => {
    const scene = new Scene(endedPlan());
    scene.dialect = tableDialect;
    expect(await orderRestart(scene.effects, scene.plan)).toBe(true);
    expect(scene.annotations).toMatchObject({ [RECORD]: 'kept' });
  });

  test('writes nothing to a plan that has changed, or has no generation', async () => {
    const scene = new Scene(endedPlan());
    scene.conflict();
    expect(await orderRestart(scene.effects, scene.plan)).toBe(false);
    const young = new Scene(buildTablePlan({}));
    expect(await orderRestart(young.effects, young.plan)).toBe(false);
    expect(young.api.calls).toEqual([]);
  });

  test('removes what the leader wrote to roll back, and keeps what somebody else wrote', async () => {
    const led = (run: string): TablePlan =>
      annotated(withOrder(endedPlan(), 2, 'plan-uid/run-1'), {
        [ROLLS_BACK_ANNOTATION]: run,
        [ROLLS_BACK_REASON_ANNOTATION]: 'w1 failed',
      });
    const order = { [RESTART_ANNOTATION]: '{"generation":3}' };
    const scene = new Scene(led('plan-uid/run-1'));
    await orderRestart(scene.effects, scene.plan);
    expect(scene.annotations).toEqual(order);
    const others = {
      [ROLLS_BACK_ANNOTATION]: 'plan-uid/run-0',
      [ROLLS_BACK_REASON_ANNOTATION]: 'w1 failed',
    };
    const other = new Scene(led('plan-uid/run-0'));
    await orderRestart(other.effects, other.plan);
    expect(other.annotations).toEqual({ ...order, ...others });
    const unled = new Scene(annotated(endedPlan(), others));
    await orderRestart(unled.effects, unled.plan);
    expect(unled.annotations).toEqual({ ...order, ...others });
  });
});

describe('the order of a roll-back', () => {
  const reason = because('TargetFailed', 'w1 failed');

  test('names the run, the reason and the next generation, because the spec changes', async () => {
    const scene = new Scene(endedPlan());
    expect(await orderRollBack(scene.effects, scene.plan, ENDED, reason)).toBe(true);
    expect(scene.annotations).toEqual({
      [ROLLS_BACK_ANNOTATION]: 'plan-uid/run-1',
      [ROLLS_BACK_REASON_ANNOTATION]: 'w1 failed',
      [RESTART_ANNOTATION]: '{"generation":4,"rollsBack":"plan-uid/run-1"}',
    });
    expect(scene.knows(scene.plan)).toBe(true);
  });

  test('leaves the plan as it is where the dialect has no second run', async () => {
    const scene = new Scene(endedPlan());
    scene.dialect = tableDialect;
    expect(await orderRollBack(scene.effects, scene.plan, ENDED, reason)).toBe(true);
    expect(scene.annotations).toMatchObject({ [RECORD]: 'kept' });
  });

  test('writes nothing to a plan that has changed, or has no generation', async () => {
    const scene = new Scene(endedPlan());
    scene.conflict();
    expect(await orderRollBack(scene.effects, scene.plan, ENDED, reason)).toBe(false);
    const young = new Scene(buildTablePlan({}));
    expect(await orderRollBack(young.effects, young.plan, ENDED, reason)).toBe(false);
    expect(young.api.calls).toEqual([]);
  });
});
