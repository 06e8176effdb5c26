/** The parts of the proof: each drains a simulated node of its own, and looks at what the API server and its controllers did. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withCordon } from '../../../src/drain/cordon-marks.ts';
import { type DrainProgress, drainNode } from '../../../src/drain/drain-node.ts';
import {
  evictionRequests,
  LIFECYCLE_PATH,
  type RequestedEviction,
  requestedEvictions,
  requestFor,
} from '../../../src/drain/eviction-request-objects.ts';
import { withdrawLeftRequests } from '../../../src/drain/left-eviction-requests.ts';
import { DEFAULT_DRAIN } from '../../../src/drain/pods.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { keyOf, nodes, type Pod, podDisruptionBudgets, pods } from '../../../src/kube/resources.ts';
import { ifFound, StatusError } from '../../../src/kube/status-error.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { messageOf } from '../../../src/util/errors.ts';
import { silentLogger } from '../../../src/util/log.ts';
import { applyManifest } from '../../../tools/controlplane/apply.ts';
import type { ControlPlane } from '../../../tools/controlplane/control-plane.ts';
import { simulatedNode } from '../../../tools/controlplane/simulated-nodes.ts';
import { REQUEST_ROWS } from '../../support/builders/eviction-request-rows.ts';
import { type Checks, differing } from '../checks.ts';
import { until } from '../wait.ts';

const NAMESPACE = 'default';
const RIGHTS = join(import.meta.dirname, '../../../deploy/rbac-eviction-requests.yaml');
const EVICTOR = 'imperative-eviction.k8s.io/evictor';
const MOVER = 'mover.example.com/move';

export interface Scene {
  readonly admin: KubeClient;
  /** Has only the documented rights. */
  readonly controller: KubeClient;
  readonly auditLog: string;
  readonly checks: Checks;
  readonly abort: AbortSignal;
  readonly close: () => void;
}

export async function openScene(
  place: ControlPlane,
  checks: Checks,
  abort: AbortSignal,
): Promise<Scene> {
  const adminConfig = await place.kubeconfig('admin');
  await applyManifest(adminConfig, await readFile(RIGHTS, 'utf8'));
  const admin = createClient(await loadClusterConfig({ path: adminConfig }));
  const path = await place.kubeconfig('controller');
  const controller = createClient(await loadClusterConfig({ path }));
  const close = (): void => {
    admin.close();
    controller.close();
  };
  return { admin, controller, auditLog: place.auditLog ?? '', checks, abort, close };
}

/** Adds a cordoned node with running pods, whose label `app` is the name of the node. */
async function addNode(
  { admin, abort }: Scene,
  node: string,
  names: readonly string[],
  spec: object = {},
): Promise<void> {
  await admin.create(nodes, simulatedNode(node));
  for (const name of names) {
    const containers = [{ name: 'c', image: 'example.com/none' }];
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: NAMESPACE, labels: { app: node } },
      spec: { nodeName: node, containers, ...spec },
    } as Pod;
    await admin.create(pods, pod, { namespace: NAMESPACE });
  }
  const isRunning = async (name: string): Promise<boolean> =>
    (await admin.get(pods, name, { namespace: NAMESPACE })).status?.phase === 'Running';
  await until(
    `the pods of ${node} to run`,
    60,
    async () => (await Promise.all(names.map(isRunning))).every(Boolean),
    abort,
  );
  const write = async (): Promise<boolean> =>
    await admin
      .get(nodes, node)
      .then(async (found) => await admin.replace(nodes, withCordon(found, 'proof/1')))
      .then(
        () => true,
        () => false,
      );
  await until(`the cordon of ${node}`, 30, write, abort);
}

/** Adds a budget for the pods of a node. Its name is the name of the node. */
async function addBudget({ admin }: Scene, node: string, minAvailable: number): Promise<void> {
  const budget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: node, namespace: NAMESPACE },
    spec: { minAvailable, selector: { matchLabels: { app: node } } },
  };
  await admin.create(podDisruptionBudgets, budget, { namespace: NAMESPACE });
}

interface Drain {
  readonly progress: DrainProgress[];
  readonly stop: AbortController;
  readonly done: Promise<string>;
}

function beginDrain({ controller }: Scene, node: string): Drain {
  const progress: DrainProgress[] = [];
  const stop = new AbortController();
  const parts = {
    client: controller,
    clock: systemClock,
    random: Math.random,
    log: silentLogger,
    abort: stop.signal,
    onChange: (state: DrainProgress): void => void progress.push(state),
  };
  const done = drainNode(node, { ...DEFAULT_DRAIN, evictionRequests: true }, parts).then(
    () => 'drained',
    messageOf,
  );
  return { progress, stop, done };
}

async function evictionOf({ admin }: Scene, pod: string): Promise<RequestedEviction | undefined> {
  const { items } = await admin.list(requestedEvictions, { namespace: NAMESPACE });
  return items.find(({ spec }) => spec.target.pod?.name === pod);
}

async function requestsFor({ admin }: Scene, names: readonly string[]): Promise<string[]> {
  const { items } = await admin.list(evictionRequests, { namespace: NAMESPACE });
  return items
    .flatMap(({ spec }) => spec.target.pod?.name ?? [])
    .filter((name) => names.includes(name))
    .toSorted();
}

/** Returns who called the eviction subresource of these pods, as the audit log says. */
async function evictors({ auditLog }: Scene, names: readonly string[]): Promise<string[]> {
  const lines = (await readFile(auditLog, 'utf8'))
    .split('\n')
    .filter((line) => line.includes('"subresource":"eviction"'));
  const events = lines.map(
    (line) => JSON.parse(line) as { user: { username: string }; objectRef: { name: string } },
  );
  return [
    ...new Set(
      events
        .filter(({ objectRef }) => names.includes(objectRef.name))
        .map(({ user }) => user.username),
    ),
  ];
}

const isBlockedBy = (drain: Drain, text: string) => (): boolean =>
  drain.progress.at(-1)?.blockedBy?.includes(text) === true;

export const PARTS: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  async budget(scene) {
    const { admin, checks, abort } = scene;
    const names = ['budget-0', 'budget-1'];
    await addBudget(scene, 'proof-budget', 2);
    await addNode(scene, 'proof-budget', names);
    const drain = beginDrain(scene, 'proof-budget');
    await checks.check(
      'a drain waits for the budget, and says which responder is at work',
      async () => {
        await until(
          'the responder to report the budget',
          90,
          isBlockedBy(drain, 'disruption budget'),
          abort,
        );
        const text = drain.progress.at(-1)?.blockedBy ?? '';
        return text.includes(`responder ${EVICTOR} evicts default/`) ? [] : [text];
      },
    );
    await checks.check('each pod has one request', async () =>
      differing({ requests: (await requestsFor(scene, names)).join() }, names.join()),
    );
    await admin.patch(
      podDisruptionBudgets,
      'proof-budget',
      { spec: { minAvailable: 0 } },
      { type: 'merge', namespace: NAMESPACE },
    );
    await checks.check('it ends after the budget lets go', async () => {
      await until(
        'the end of the drain',
        300,
        async () =>
          (await admin.list(pods, { fieldSelector: 'spec.nodeName=proof-budget' })).items.length ===
          0,
        abort,
      );
      return differing({ end: await drain.done }, 'drained');
    });
    await checks.check('Refit itself evicted none of them', async () => {
      const found = await evictors(scene, names);
      const isOurs = found.some((each) => each.startsWith('refit'));
      return [...differing({ evictors: found.length }, 1), ...differing({ isOurs }, false)];
    });
    await checks.check('no request and no Eviction is left', async () => {
      await until(
        'the garbage collector',
        60,
        async () => (await evictionOf(scene, 'budget-0')) === undefined,
        abort,
      );
      return differing({ requests: (await requestsFor(scene, names)).join() }, '');
    });
  },

  async cancelled(scene) {
    const { admin, checks, abort } = scene;
    await addBudget(scene, 'proof-cancelled', 1);
    await addNode(scene, 'proof-cancelled', ['kept']);
    const drain = beginDrain(scene, 'proof-cancelled');
    await until(
      'the Eviction',
      60,
      async () => (await evictionOf(scene, 'kept')) !== undefined,
      abort,
    );
    drain.stop.abort(new Error('skipped'));
    await checks.check(
      'a drain that is ended early withdraws its request, and the pod stays',
      async () => {
        const end = await drain.done;
        const requests = (await requestsFor(scene, ['kept'])).join();
        await until(
          'the garbage collector',
          60,
          async () => (await evictionOf(scene, 'kept')) === undefined,
          abort,
        );
        const { deletionTimestamp } = (await admin.get(pods, 'kept', { namespace: NAMESPACE }))
          .metadata;
        return [
          ...differing({ end }, 'skipped'),
          ...differing({ requests }, ''),
          ...differing({ deletionTimestamp }, undefined),
        ];
      },
    );
  },

  async left(scene) {
    const { admin, controller, checks } = scene;
    await addBudget(scene, 'proof-left', 1);
    await addNode(scene, 'proof-left', ['left']);
    const [pod] = (await admin.list(pods, { fieldSelector: 'spec.nodeName=proof-left' })).items;
    if (pod === undefined) throw new Error('the node has a pod');
    await controller.create(evictionRequests, requestFor(pod, 'proof-left'), {
      namespace: NAMESPACE,
    });
    const tidy = async (): Promise<number> =>
      await withdrawLeftRequests({
        client: controller,
        log: silentLogger,
        abort: scene.abort,
        onFailures: (errors) => {
          throw new AggregateError(errors);
        },
      });
    await checks.check(
      'a request that a killed process left goes only after the node is schedulable',
      async () => {
        await tidy();
        const before = (await requestsFor(scene, ['left'])).join();
        await admin.patch(
          nodes,
          'proof-left',
          { spec: { unschedulable: null } },
          { type: 'merge' },
        );
        await tidy();
        const after = (await requestsFor(scene, ['left'])).join();
        return [
          ...differing({ before }, keyOf(pod).replace('default/', '')),
          ...differing({ after }, ''),
        ];
      },
    );
  },
};

/** Parts that need the API server of the version whose controllers run. */
export const WHOLE_PARTS: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  async format(scene) {
    const { admin, checks } = scene;
    await checks.check('the API server serves the kind, and discovery says so', async () =>
      differing({ status: (await admin.raw(LIFECYCLE_PATH)).status }, 200),
    );
    for (const [what, request, faults] of REQUEST_ROWS)
      await checks.check(`a request ${what}: ${faults.join() || 'accepted'}`, async () => {
        const options = { namespace: NAMESPACE };
        const answer = await admin
          .create(evictionRequests, request, options)
          .catch((error: unknown) => error);
        await ifFound(admin.delete(evictionRequests, request.metadata.name, options));
        const causes = answer instanceof StatusError ? (answer.status.details?.causes ?? []) : [];
        const fields = [...new Set(causes.map(({ field }) => field))];
        if (answer instanceof StatusError && fields.length === 0) return [messageOf(answer)];
        return differing({ fields: fields.join() }, faults.join());
      });
  },

  async responder(scene) {
    const { admin, checks, abort } = scene;
    const evictionResponders = [{ name: MOVER, priority: 10_000 }];
    await addNode(scene, 'proof-responder', ['moved'], { evictionResponders });
    const drain = beginDrain(scene, 'proof-responder');
    await checks.check(
      'a responder that the pod names comes first, and the drain says what it reports',
      async () => {
        await until(
          'the Eviction',
          60,
          async () => (await evictionOf(scene, 'moved'))?.status?.responders !== undefined,
          abort,
        );
        const eviction = await evictionOf(scene, 'moved');
        const responders = [
          {
            name: MOVER,
            heartbeatTime: new Date(systemClock.now()).toISOString(),
            message: 'the data moves',
          },
        ];
        const { name = '' } = eviction?.metadata ?? {};
        const patch = {
          apiVersion: 'lifecycle.k8s.io/v1alpha1',
          kind: 'Eviction',
          metadata: { name, namespace: NAMESPACE },
          status: { responders },
        };
        await admin.patch(requestedEvictions, name, patch, {
          type: 'apply',
          subresource: 'status',
          fieldManager: 'mover',
          force: true,
          namespace: NAMESPACE,
        });
        await until('the report', 30, isBlockedBy(drain, 'the data moves'), abort);
        return drain.progress
          .at(-1)
          ?.blockedBy?.includes(`responder ${MOVER} evicts default/moved`) === true
          ? []
          : [JSON.stringify(drain.progress.at(-1))];
      },
    );
    await admin.delete(pods, 'moved', { namespace: NAMESPACE });
    await checks.check('the drain ends when that responder has deleted the pod', async () => [
      ...differing({ end: await drain.done }, 'drained'),
      ...differing({ evictors: (await evictors(scene, ['moved'])).join() }, ''),
    ]);
  },
};
