/** Shows what a watch records about the answers of the API server. */

import { expect, test } from 'vitest';
import { textsOf } from '../../../test/support/builders/dialects.ts';
import { MemoryApi } from '../../../test/support/builders/memory-api.ts';
import { buildPlan } from '../../../test/support/builders/plans.ts';
import { READY } from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { later, SECOND, T0 } from '../../../test/support/clock/times.ts';
import { LEADER_LEASE } from '../../dialects/autopilot/leader-lease.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { nodes } from '../../kube/resources.ts';
import { controlNodes } from '../../signal/names.ts';
import { RefitError } from '../../util/errors.ts';
import { sourcesOf } from './inspection-sources.ts';
import { contactWith, observeOnce } from './status-session.ts';

test('the API server is silent since the first request without an answer, until the next answer', async () => {
  const clock = new FakeClock(T0);
  const contact = contactWith(clock);
  const seen: (string | undefined)[] = [];
  for (const code of [200, 0, 503, 401, 0]) {
    contact.note({ code });
    seen.push(contact.silentSince);
    expect(contact.isLoggedOut).toBe(code === 401);
    await clock.advance(SECOND);
  }
  expect(seen).toEqual([undefined, later(SECOND), later(SECOND), undefined, later(4 * SECOND)]);
});

test.each([
  [[], { plan: 'nosuch' }, 'there is no plan nosuch'],
  [[buildPlan()], { plan: 'nosuch' }, 'there is no plan nosuch; there is autopilot/autopilot'],
  [
    [buildPlan()],
    { plan: '', namespace: '' },
    'there is no plan "" in namespace ""; there is autopilot/autopilot',
  ],
  [
    [buildPlan()],
    { dialect: 'cattle', namespace: 'a' },
    'there is no plan of dialect cattle in namespace a; there is autopilot/autopilot',
  ],
])('a filter that keeps no plan is an error: %#', async (plans, filter, message) => {
  const client = new MemoryApi().client;
  const { signal: abort } = new AbortController();
  const sources = sourcesOf(client, READY, new FakeClock(T0), abort);
  const viewParts = { sources, policies: { list: () => [] }, textsOf, filter };
  const world = buildWorldOf([nodes, []], [controlNodes, []]);
  const loaded = [{ dialect: autopilot, plans: () => plans, world }];
  const look = observeOnce(
    {
      config: { server: 'https://127.0.0.1:1', user: {}, namespace: 'default', files: [] },
      client,
      abort,
      lease: LEADER_LEASE,
      contact: contactWith(new FakeClock(T0)),
      viewParts,
      loaded,
    },
    T0,
  );
  await expect(look).rejects.toThrow(new RefitError('REFIT_CONTROL', message));
});
