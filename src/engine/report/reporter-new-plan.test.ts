/** Proves that a new plan which cannot start reports this in its conditions and in one Event, like a running plan. */
import { expect, test } from 'vitest';
import { knowledgeOf } from '../../../test/support/builders/knowledge.ts';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { MemoryApi } from '../../../test/support/builders/memory-api.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildTablePlan, tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import { assess } from '../assess/assess.ts';
import { because } from '../model/reasons.ts';
import { withStages, withTargets } from '../model/rollout.ts';
import { CONDITIONS_ANNOTATION, conditionsIn } from '../model/written-conditions.ts';
import { viewsOf } from '../snapshot/world.ts';
import { createReporter } from './reporter.ts';

const policy = buildPolicy({
  problems: [because('PolicyUnreadable', 'spec.windows[0].timeZone is none')],
});

test('a new plan under a policy that cannot be read', async () => {
  const api = new MemoryApi();
  const dialect = { ...tableDialect, statusRecord: { hasConditions: false } } as const;
  api.put(dialect.plans, buildTablePlan({ workers: ['w1'] }));
  const events: string[] = [];
  const reporter = createReporter({
    dialect,
    client: api.client,
    ...knowledgeOf(viewsOf([])),
    log: buildLog([], 'info'),
    metrics: createMetrics(),
    recordEvent: (_object, { type, reason }) =>
      events.push(`${type} ${reason.code}: ${reason.message}`),
  });
  const blocked: (string | undefined)[] = [];
  const again: (number | undefined)[] = [];
  for (const ms of [4000, 14_000, 15_000]) {
    const plan = api.read(dialect.plans, 'plan');
    const { spec } = plan;
    // No state is recorded, so the targets always begin to wait at the present time.
    const targets = withStages(spec).map(({ target }) => ({ ...target, since: later(ms) }));
    const rollout = withTargets(
      { ...spec, source: { ...spec.source, created: later(0) } },
      targets,
    );
    const assessment = assess(buildSnapshot(rollout), policy, T0 + ms);
    again.push(await reporter.decided({ plan, assessment }));
    const text = api.read(dialect.plans, 'plan').metadata.annotations?.[CONDITIONS_ANNOTATION];
    blocked.push(
      conditionsIn(text).map(
        ({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`,
      )[0],
    );
  }
  expect(blocked[1]).toBe('Blocked=True PolicyUnreadable: spec.windows[0].timeZone is none');
  expect(blocked[2]).toBe(blocked[1]);
  expect(again[0]).toBe(6000);
  expect(events).toEqual(['Warning PolicyUnreadable: spec.windows[0].timeZone is none']);
});
