/**
 * Proves that the recorded end of a plan is reported if it is no longer true: once as an Event, and also in the metric
 * and in the conditions.
 */
import { expect, test } from 'vitest';
import { knowledgeOf } from '../../../test/support/builders/knowledge.ts';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { MemoryApi } from '../../../test/support/builders/memory-api.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
} from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import { assess } from '../assess/assess.ts';
import {
  CONDITIONS_ANNOTATION,
  conditionsIn,
  generationOfEnd,
  MESSAGE_ANNOTATION,
} from '../model/written-conditions.ts';
import { gather } from '../snapshot/gather.ts';
import { viewsOf } from '../snapshot/world.ts';
import { createReporter } from './reporter.ts';

const DONE = buildRollout([buildStage('worker', [buildTarget('w1', 'done')])], { phase: 'done' });
const dialect = {
  ...tableDialect,
  reruns: {
    recordOf: () => undefined,
    withoutRecord: (plan: TablePlan) => plan,
    askedOf: () => undefined,
  },
  statusRecord: { hasConditions: false },
  resolve: () => DONE,
} as const;
const EDITED =
  'the plan was edited after it ended (its spec has changed since); it will not run: delete it and apply it again';

function scene() {
  const api = new MemoryApi();
  const plan = buildTablePlan({ workers: ['w1'] });
  api.put(dialect.plans, { ...plan, metadata: { ...plan.metadata, generation: 1 } });
  const events: string[] = [];
  const metrics = createMetrics();
  const watched = dialect.watched.map(({ resource }) => [resource, api.view(resource)] as const);
  const knowledge = knowledgeOf(viewsOf(watched));
  const reporter = createReporter({
    dialect,
    client: api.client,
    ...knowledge,
    log: buildLog([], 'info'),
    metrics,
    recordEvent: (_object, { type, reason }) =>
      events.push(`${type} ${reason.code}: ${reason.message}`),
  });
  const read = (): TablePlan => api.read(dialect.plans, 'plan');
  const decided = async (now = T0): Promise<void> => {
    const plan = read();
    const snapshot = gather(dialect, plan, knowledge.world, now);
    await reporter.decided({ plan, assessment: assess(snapshot, buildPolicy(), now) });
  };
  const edit = (generation: number): void =>
    api.change(dialect.plans, 'plan', (seen) => ({
      ...seen,
      metadata: { ...seen.metadata, generation },
    }));
  return { api, events, metrics, read, decided, edit };
}

test('whatever of the spec is edited after the end is reported once', async () => {
  const { events, metrics, read, decided, edit } = scene();
  await decided();
  expect([events, generationOfEnd(read())]).toEqual([[], 1]);
  edit(2);
  await decided();
  await decided(T0 + 1000);
  expect(events).toEqual([`Warning EditedAfterEnd: ${EDITED}`]);
  const { body: text } = await metrics.expose();
  expect(text).toMatch(/refit_plans\{[^}]*phase="edited"[^}]*\} 1/);
  expect(text).toMatch(/refit_plans\{[^}]*phase="done"[^}]*\} 0/);
  const conditions = conditionsIn(read().metadata.annotations?.[CONDITIONS_ANNOTATION]);
  expect(conditions).toContainEqual(
    expect.objectContaining({
      type: 'Degraded',
      status: 'True',
      reason: 'EditedAfterEnd',
      message: EDITED,
    }),
  );
  expect(read().metadata.annotations?.[MESSAGE_ANNOTATION]).toBe(`${EDITED} (refit why)`);
  // The conditions were written again, but they still describe the spec that was carried out.
  expect(generationOfEnd(read())).toBe(1);
});
