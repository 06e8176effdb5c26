/**
 * Proves what `refit kubeadm apply` does if it has no permission to acquire the lock, and if it cannot write the plan.
 */
import { expect, onTestFinished, test } from 'vitest';
import { startApiServer } from '../../../../sandbox/api-server/api-server.ts';
import { manifest } from '../../../../test/support/kubeadm/upgrade-surveys.ts';
import { cordonOwner, CORDON_ANNOTATION as MARK } from '../../../drain/cordon-marks.ts';
import { annotated, configMaps, nodes } from '../../../kube/resources.ts';
import { isForbidden, StatusError } from '../../../kube/status-error.ts';
import { aroundRequests } from '../../../kube/transport/bounded-client.ts';
import { clientOver } from '../../../kube/transport/http-client.ts';
import { systemClock } from '../../../util/clock.ts';
import { silentLogger } from '../../../util/log.ts';
import { KUBEONE_LABEL, LABEL_OWNER } from '../plan/kubeone-label.ts';
import { newPlan, PLACE, type Request } from '../plan/plan-object.ts';
import type { HostAssessment } from '../plan/preflight.ts';
import { carryOut } from './run-upgrade.ts';
import type { ApplySession } from './upgrade-session.ts';

const refusal = (what: string) =>
  new StatusError({
    kind: 'Status',
    code: 403,
    reason: 'Forbidden',
    message: `${what} is forbidden`,
  });

/**
 * Runs an upgrade against an API server that refuses the requests `refused`. If `late` is true, the API server carries
 * out a request before it refuses the request. `before` is called before each request.
 */
async function against(
  refused: readonly string[],
  late = false,
  before?: (what?: string) => Promise<void>,
) {
  const server = await startApiServer();
  onTestFinished(async () => await server.stop());
  const own = clientOver(server.caller);
  const client = aroundRequests(own, async (what, options, send) => {
    await before?.(what);
    if (!refused.includes(what ?? '')) return await send(options);
    if (late) await send(options);
    throw refusal(String(what));
  });
  const abort = AbortSignal.timeout(20_000);
  const output = { write: () => undefined };
  const flags = { leaseDuration: 15_000 };
  const session = {
    flags,
    client,
    clock: systemClock,
    log: silentLogger,
    identity: 'me',
    manifest,
    output,
    abort,
  };
  return { own, session: session as unknown as ApplySession };
}

const request: Request = {
  version: 'v1.36.3',
  concurrent: 1,
  certificates: ['cp1'],
  leader: [],
  followers: [],
  kubelets: [],
  workers: [],
};
const ended = newPlan(request, 'then');
const left = { ...ended, data: { ...ended.data, rollout: '{"phase":"failed"}' } };
const next = async (): Promise<HostAssessment> =>
  await Promise.resolve({
    request,
    resumes: false,
    continues: false,
    start: 'now',
  } as HostAssessment);

test('what an ended run has left half done is still known if the next plan cannot be written', async () => {
  const { own, session } = await against(['create configmaps', 'update configmaps']);
  await own.create(configMaps, left);
  await expect(carryOut(session, next)).rejects.toSatisfy(isForbidden);
  expect((await own.get(configMaps, PLACE.name, PLACE)).data).toEqual(left.data);
});

test('the next plan takes the place of the one before, and is another run', async () => {
  const { own, session } = await against(['update configmaps'], true);
  await own.create(configMaps, left);
  await expect(carryOut(session, next)).rejects.toSatisfy(isForbidden);
  const { metadata, data } = await own.get(configMaps, PLACE.name, PLACE);
  expect(data).toEqual({
    ...newPlan(request, 'now').data,
    uid: expect.any(String),
    created: expect.any(String),
  });
  expect(data?.['uid']).not.toBe(metadata.uid);
});

test('the mark of a cordon that another leader sets at that moment stays, and a Node that is deleted then holds up nothing', async () => {
  const names = ['bare', 'cordoned', 'gone'];
  const { own, session } = await against([], false, async (what) => {
    if (what !== 'patch nodes') return;
    const [node] = await Promise.all([
      own.get(nodes, 'cordoned'),
      own.delete(nodes, 'gone').catch(() => undefined),
    ]);
    await own.replace(nodes, {
      ...annotated(node, { [MARK]: 'theirs' }),
      spec: { unschedulable: true },
    });
  });
  for (const name of names)
    await own.create(nodes, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, annotations: { [MARK]: 'earlier' } },
    });
  const nothing = { ...request, certificates: [] };
  const decide = async () =>
    await Promise.resolve({ request: nothing, resumes: false } as unknown as HostAssessment);
  expect(await carryOut(session, decide)).toBe(0);
  const left = (await own.listAll(nodes)).items.map((node) => [
    node.metadata.name,
    cordonOwner(node),
  ]);
  expect(left).toEqual([
    ['bare', undefined],
    ['cordoned', 'theirs'],
  ]);
});

const CP1 = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'cp1' } } as const;

async function labelsOfCp1({ own }: Awaited<ReturnType<typeof against>>) {
  const { metadata } = await own.get(nodes, 'cp1');
  return [metadata.labels?.[KUBEONE_LABEL], metadata.annotations?.[LABEL_OWNER]];
}

test('kubeone apply finds its label before anything is prepared, and not after a refusal', async () => {
  const scene = await against([]);
  await scene.own.create(nodes, CP1);
  let prepared: unknown;
  const shells = {
    run: async () => {
      prepared = await labelsOfCp1(scene);
      return { code: 1, stdout: '', stderr: 'no space' };
    },
  };
  const session = { ...scene.session, shells } as unknown as ApplySession;
  const upgrade = { ...request, certificates: [], leader: ['cp1'] };
  const decide = async () => await Promise.resolve({ ...(await next()), request: upgrade });
  await expect(carryOut(session, decide)).rejects.toThrow('nothing was changed');
  expect(prepared).toEqual(['', 'me']);
  expect(await labelsOfCp1(scene)).toEqual([undefined, undefined]);
});

test('what a killed run left is removed by a run that finds nothing to do', async () => {
  const left = { labels: { [KUBEONE_LABEL]: '' }, annotations: { [LABEL_OWNER]: 'killed' } };
  const scene = await against([]);
  await scene.own.create(nodes, { ...CP1, metadata: { name: 'cp1', ...left } });
  const decide = async () =>
    await Promise.resolve({ ...(await next()), request: { ...request, certificates: [] } });
  expect(await carryOut(scene.session, decide)).toBe(0);
  expect(await labelsOfCp1(scene)).toEqual([undefined, undefined]);
});

test('an open rollout keeps the label, because its hosts may be half upgraded', async () => {
  const scene = await against([]);
  await scene.own.create(nodes, CP1);
  const session: object = {
    ...scene.session,
    get config() {
      throw new Error('cut off');
    },
  };
  const decide = async () => await Promise.resolve({ ...(await next()), resumes: true });
  await expect(carryOut(session as ApplySession, decide)).rejects.toThrow('cut off');
  expect(await labelsOfCp1(scene)).toEqual(['', 'me']);
});

test('without the right to write its lease, the command ends and names it, before it decides anything', async () => {
  const { session } = await against(['create leases']);
  const decide = async (): Promise<never> => await Promise.reject(new Error('it decided'));
  const thrown: unknown = await carryOut(session, decide).catch((e: unknown) => e);
  expect(isForbidden(thrown)).toBe(true);
});
