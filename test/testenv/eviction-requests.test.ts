/**
 * Tests a drain that may use EvictionRequests on an API server that does not serve them. The drain then uses ordinary
 * evictions.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { LIFECYCLE_PATH } from '../../src/drain/eviction-request-objects.ts';
import { DEFAULT_DRAIN } from '../../src/drain/pods.ts';
import { podDisruptionBudgets, pods } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/util/clock.ts';
import { auditedSince, endOfAudit } from './audit.ts';
import { auditedEvictions, beginDrain, PATIENCE, Stage } from './drain-stage.ts';
import { Workloads } from './drain-workloads.ts';

const NAMESPACE = 'eviction-requests';
const NAME = 'requests';
let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open(NAMESPACE);
});
afterAll(async () => await stage.close());

test('the pods are evicted plainly, budgets count, and the API is asked for the kind only once', async () => {
  const set = new Workloads(NAMESPACE, NAME);
  const workloads = [
    set.of('Deployment', NAME, { replicas: 3 }),
    set.budget(NAME, NAME, { maxUnavailable: 0 }),
  ];
  const node = await stage.set(NAME, workloads, 3);
  expect((await stage.controller.raw(LIFECYCLE_PATH)).status).toBe(404);
  const start = await endOfAudit();
  const options = { ...DEFAULT_DRAIN, evictionRequests: true };
  const { progress, done } = beginDrain(node, stage.controller, systemClock, options);
  await vi.waitFor(
    () => expect(progress.at(-1)?.blockedBy).toContain(`PodDisruptionBudget ${NAMESPACE}/${NAME}`),
    PATIENCE,
  );
  await stage.admin.delete(podDisruptionBudgets, NAME, { namespace: NAMESPACE });
  await done;
  expect((await stage.admin.list(pods, { fieldSelector: `spec.nodeName=${node}` })).items).toEqual(
    [],
  );
  const codes = await auditedEvictions(`${NAME}-`);
  expect(codes.filter((code) => code === 201)).toHaveLength(3);
  expect(codes).toContain(429);
  const asked = await auditedSince(start, '/apis/lifecycle.k8s.io');
  expect(asked.map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([
    `get ${LIFECYCLE_PATH}`,
  ]);
});
