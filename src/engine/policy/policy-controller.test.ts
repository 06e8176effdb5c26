/**
 * Tests that the status of policies is updated when policies or plans change, and that a write is retried after a
 * conflict.
 */
import { beforeEach, expect, test } from 'vitest';
import { MemoryApi } from '../../../test/support/builders/memory-api.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { upgradePolicies } from '../../api/kinds.ts';
import { DIALECT_NAMES } from '../../api/refit/upgrade-policy.ts';
import { EVERY_CONTROLLER } from '../../kube/job-namespaces.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';
import { StatusError } from '../../kube/status-error.ts';
import type { Informer } from '../../kube/watch/informer.ts';
import type { Handler } from '../../kube/watch/store.ts';
import type { Controller } from '../../runtime/run-controller.ts';
import { silentLogger } from '../../util/log.ts';
import { policyController } from './policy-controller.ts';

const [ONE] = DIALECT_NAMES;
const boats: Resource = {
  group: 'sea.example.com',
  version: 'v1',
  kind: 'Boat',
  plural: 'boats',
  namespaced: false,
};
const CALL = 'replace upgradepolicies/nightly/status';

let api: MemoryApi;
let controller: Controller;
/** The handlers of the informers. The handler for policies is the first. */
let handlers: Handler<KubeObject>[];

/** Returns an informer whose view is always current. The test triggers its events. */
function informerOf<T extends KubeObject>(resource: Resource<T>): Informer<T> {
  const fresh = () => {
    const view = api.view(resource);
    view.catchUp();
    return view;
  };
  const informer = {
    resource,
    get: (name: string) => fresh().get(name),
    list: () => fresh().list(),
    addHandler: (handler: Handler<T>) => {
      handlers.push(handler);
      return () => undefined;
    },
  };
  return informer as unknown as Informer<T>;
}

const isPlan = ({ metadata }: KubeObject): boolean => metadata.name !== 'no-plan';

beforeEach(() => {
  api = new MemoryApi();
  handlers = [];
  api.put(upgradePolicies, buildUpgradePolicy('nightly'));
  controller = policyController({
    writer: api.client,
    clock: new FakeClock(T0),
    policies: informerOf(upgradePolicies),
    jobs: EVERY_CONTROLLER,
    plans: { [ONE]: informerOf(boats) },
    effects: {},
    isPlan: (_, object) => isPlan(object),
    plansAmong: (dialect, objects) =>
      objects
        .filter(isPlan)
        .map(({ metadata: { namespace, name } }) => ({ dialect, namespace, name })),
  });
});

async function reconcile(): Promise<unknown> {
  return await controller.reconcile('nightly', {
    abort: new AbortController().signal,
    log: silentLogger,
  });
}

test('a policy lists created plans and drops deleted ones, and is not written without a change', async () => {
  api.put(boats, { metadata: { name: 'fleet' } });
  api.put(boats, { metadata: { name: 'no-plan' } });
  await reconcile();
  expect(api.read(upgradePolicies, 'nightly').status?.covers).toEqual([`${ONE}/fleet`]);
  await reconcile();
  api.remove(boats, 'fleet');
  await reconcile();
  expect(api.read(upgradePolicies, 'nightly').status?.covers).toEqual([]);
  expect(api.calls).toEqual([CALL, CALL]);
});

test('a deleted plan is not reconciled, cached or not', async () => {
  api.before(CALL, () => api.remove(upgradePolicies, 'nightly'));
  await reconcile();
  await reconcile();
  expect(api.calls).toEqual([CALL]);
});

test('a write of a policy that meets a conflict is reported, so that it is repeated', async () => {
  api.before(CALL, () =>
    api.change(upgradePolicies, 'nightly', (policy) => ({ ...policy, status: { covers: [] } })),
  );
  await expect(reconcile()).rejects.toMatchObject({ reason: 'Conflict' });
  await reconcile();
  expect(api.read(upgradePolicies, 'nightly').status?.conditions).toHaveLength(2);
});

test('a controller without the right to write the status of a policy tries again later', async () => {
  api.before(CALL, () => {
    throw new StatusError({ kind: 'Status', code: 403, reason: 'Forbidden' });
  });
  expect(await reconcile()).toEqual({ requeueAfterMs: 600_000 });
  await reconcile();
  expect(api.calls).toEqual([CALL, CALL]);
});

test('every policy is reconciled when one changes, or a plan is created or deleted', () => {
  api.put(upgradePolicies, buildUpgradePolicy('weekly'));
  const queued: string[] = [];
  for (const source of controller.sources) source.start((key) => queued.push(key));
  const [policies, plans] = handlers;
  const woken = (change: () => void): string[] => {
    queued.length = 0;
    change();
    return queued.toSorted();
  };
  const both = ['nightly', 'weekly'];
  const policy = buildUpgradePolicy('weekly');
  const edited = { ...policy, metadata: { ...policy.metadata, generation: 2 } };
  const boat = { metadata: { name: 'fleet' } };
  expect(woken(() => policies?.updated?.(edited, policy))).toEqual(both);
  expect(woken(() => policies?.updated?.({ ...policy }, policy))).toEqual([]);
  expect(woken(() => plans?.added?.(boat))).toEqual(both);
  expect(woken(() => plans?.updated?.(boat, boat))).toEqual([]);
  expect(woken(() => plans?.updated?.(boat, { metadata: { name: 'no-plan' } }))).toEqual(both);
  expect(woken(() => plans?.deleted?.(boat))).toEqual(both);
});
