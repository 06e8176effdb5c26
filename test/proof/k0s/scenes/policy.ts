/** One upgrade under a policy with waves, a gate, a hold, a hook in a pod, rules for drains, and a window that closes. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { applyManifest } from '../../../../tools/controlplane/apply.ts';
import { until } from '../../wait.ts';
import { AuditLogs, statusIn } from '../observe/audit.ts';
import { watchHosts } from '../observe/hosts.ts';
import { ENDED, outOfOrder } from '../outcome.ts';
import { planFor, targetState, untilState } from '../plan.ts';
import { Refit } from '../refit.ts';
import type { Scene } from '../scene.ts';
import { deployment, hookTemplate, pod, podsOf } from '../workloads.ts';

const DEPLOY = join(import.meta.dirname, '../../../../deploy');
/** The window is open this long. A controller takes less than half a minute. */
const WINDOW_MINUTES = 3;

export async function followPolicy(scene: Scene): Promise<void> {
  const { cluster, checks, from, to } = scene;
  const refit = new Refit(cluster, scene.refit);
  await refit.install();
  await cluster.reset(from, 'off');
  await refit.startControllers();
  await refit.startAgents(cluster.machines);
  await prepare(scene);
  const audit = new AuditLogs(cluster.controllers);
  await using watched = watchHosts(cluster, 1);
  const lasting = await podsOf(cluster, 'app=stays');
  await cluster.apply(policy(windowOf(new Date())));
  const closes = closingOf(new Date());
  await cluster.apply(planFor(scene, to.version));
  await gate(scene, refit);
  await closedWindow(scene, refit, audit, closes);
  await waves(scene, refit);
  await checks.check(
    'the plan waits for the node on hold, and ends when the hold ends',
    async () => {
      await untilDone(scene, 'w3');
      const { stdout } = await refit.command('why', 'w2');
      const told = /hold|held/i.test(stdout) ? [] : [`refit why w2 says: ${stdout}`];
      const early = await signalled(audit, 'w2');
      await succeeds(refit, 'unhold', 'w2');
      const state = await untilState(scene, ENDED);
      return [
        ...told,
        ...(early ? ['w2 was signalled while it was on hold'] : []),
        ...(state === 'Completed' ? [] : [state]),
      ];
    },
  );
  await checks.check(`every host runs ${to.version}, and nothing is left behind`, async () => {
    await cluster.settled(to.version);
    return await cluster.left();
  });
  await checks.check('controllers first, one at a time', () => [
    ...watched.violations,
    ...outOfOrder(
      audit.writes(),
      cluster.machines.map(({ name }) => name),
    ),
  ]);
  await drains(scene, lasting);
  await hooks(scene);
  await refit.stop();
}

/** Creates the pods, the gate, the rights and the labels. */
async function prepare({ cluster }: Scene): Promise<void> {
  await applyManifest(cluster.kubeconfig, await readFile(join(DEPLOY, 'rbac-hooks.yaml'), 'utf8'));
  for (const object of [
    gateObject('no'),
    ...READ_GATE,
    pod({ name: 'stays', node: 'w1' }),
    pod({ name: 'batch', node: 'w1', command: 'while [ ! -e /tmp/done ]; do sleep 1; done' }),
    deployment('moves', 'w1'),
  ])
    await cluster.apply(object);
  await cluster.kubectl('label', 'node', 'w1', 'canary=true', '--overwrite');
  for (const app of ['stays', 'batch', 'moves'])
    await until(`the pod ${app} to run on w1`, 180, async () =>
      (await podsOf(cluster, `app=${app}`)).some(
        ({ node, phase }) => node === 'w1' && phase === 'Running',
      ),
    );
}

const gateObject = (open: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'gate', namespace: 'default', labels: { gate: 'true' } },
  data: { open },
});

/** A leader reads only what it was granted. */
const READ_GATE: readonly object[] = [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'refit-gate', namespace: 'default' },
    rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'refit-gate', namespace: 'default' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'refit-gate' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'refit-controller' }],
  },
];

const policy = (windows: readonly object[]): object => ({
  apiVersion: 'upgrade.refit.dev/v1alpha1',
  kind: 'UpgradePolicy',
  metadata: { name: 'careful' },
  spec: {
    ...(windows.length > 0 ? { windows } : {}),
    waves: [{ selector: { matchLabels: { canary: 'true' } } }, { approval: 'Manual' }],
    health: {
      resources: [
        {
          name: 'gate',
          apiVersion: 'v1',
          kind: 'ConfigMap',
          namespace: 'default',
          selector: { matchLabels: { gate: 'true' } },
          expression: 'object.data.open == "yes"',
        },
      ],
    },
    hooks: [
      {
        name: 'look',
        when: 'AfterDrain',
        timeout: '2m',
        job: {
          namespace: 'refit-hooks',
          pinToNode: true,
          template: hookTemplate('echo "$REFIT_NODE to $REFIT_TO_VERSION"'),
        },
      },
    ],
    drain: {
      pods: [
        { selector: { matchLabels: { app: 'stays' } }, behavior: 'Skip' },
        { selector: { matchLabels: { app: 'batch' } }, behavior: 'WaitCompleted' },
      ],
    },
  },
});

/** Returns a window that opened at the beginning of this minute. */
function windowOf(now: Date): readonly object[] {
  const start = `${String(now.getUTCHours()).padStart(2, '0')}:${String(now.getUTCMinutes()).padStart(2, '0')}`;
  return [{ start, length: `${WINDOW_MINUTES}m`, timeZone: 'UTC' }];
}

const closingOf = (now: Date): number =>
  Math.floor(now.getTime() / 60_000) * 60_000 + WINDOW_MINUTES * 60_000;

/** Checks that no node starts while the gate is closed, and that `refit why` names the check. */
async function gate({ cluster, checks }: Scene, refit: Refit): Promise<void> {
  await checks.check(
    'a CEL check that fails holds the plan back, and refit why names it',
    async () => {
      let said = '';
      await until('refit why to name the check', 60, async () => {
        said = (await refit.command('why')).stdout;
        return said.includes('gate');
      }).catch(() => undefined);
      return said.includes('gate') ? [] : [said];
    },
  );
  await succeeds(refit, 'hold', 'w2', '--reason', 'disk');
  await cluster.apply(gateObject('yes'));
}

/** Checks that no node starts after the window has closed, and that the plan goes on without the window. */
async function closedWindow(
  scene: Scene,
  refit: Refit,
  audit: AuditLogs,
  closes: number,
): Promise<void> {
  const { cluster, checks } = scene;
  await checks.check(
    'a window that closes stops further starts, and refit why says so',
    async () => {
      await until('the window to close', 300, () => Date.now() > closes + 15_000);
      const late = audit
        .writes()
        .filter((write) => statusIn(write) === 'Signalled' && write.at > closes + 1000)
        .map(({ name }) => `${name} was signalled after the window had closed`);
      const { stdout } = await refit.command('why');
      return [...late, ...(/window/i.test(stdout) ? [] : [`refit why says: ${stdout}`])];
    },
  );
  await cluster.apply(policy([]));
}

/** Checks that the canary goes first, and that the second wave waits for an approval. */
async function waves(scene: Scene, refit: Refit): Promise<void> {
  const { cluster, checks } = scene;
  await checks.check(
    'a drain waits for the pod that must complete, and refit why names it',
    async () => {
      let said = '';
      await until('the drain of w1 to wait', 300, async () => {
        said = (await refit.command('why', 'w1')).stdout;
        return said.includes('batch');
      });
      await cluster.kubectl('exec', 'batch', '--', 'sh', '-c', '>/tmp/done');
      return [];
    },
  );
  await checks.check('the second wave waits for an approval', async () => {
    await untilDone(scene, 'w1');
    let said = '';
    await until('the plan to wait for an approval', 120, async () => {
      said = (await refit.command('why')).stdout;
      return said.includes('approve');
    }).catch(() => undefined);
    await succeeds(refit, 'approve', 'autopilot', '--wave', '2', '--reason', 'canary works');
    return said.includes('approve') ? [] : [said];
  });
}

async function drains(
  { cluster, checks }: Scene,
  lasting: Awaited<ReturnType<typeof podsOf>>,
): Promise<void> {
  await checks.check('the skipped pod kept its container, the others left the node', async () => {
    const stays = await podsOf(cluster, 'app=stays');
    const same = JSON.stringify(stays) === JSON.stringify(lasting);
    const moved = await podsOf(cluster, 'app=moves');
    const running = moved.filter(({ phase }) => phase === 'Running');
    return [
      ...(same ? [] : [`stays was ${JSON.stringify(lasting)} and is ${JSON.stringify(stays)}`]),
      ...(running.length === 1 ? [] : [`moves is ${JSON.stringify(moved)}`]),
    ];
  });
}

/** Returns what is wrong with the Jobs: each worker has one, whose pod ran on it. */
async function hooks({ cluster, checks }: Scene): Promise<void> {
  await checks.check('the hook ran once for each worker, in a pod on its node', async () => {
    const pods = await podsOf(cluster, 'job-name', 'refit-hooks');
    const done = pods.filter(({ phase }) => phase === 'Succeeded').map(({ node }) => node);
    const expected = cluster.workers.map(({ name }) => name);
    return done.toSorted((a, b) => a.localeCompare(b)).join() === expected.join()
      ? []
      : [`pods succeeded on ${done.join()}: ${JSON.stringify(pods)}`];
  });
}

async function untilDone(scene: Scene, name: string): Promise<void> {
  await until(
    `${name} to be done`,
    300,
    async () => (await targetState(scene, name)) === 'SignalCompleted',
  );
}

const signalled = async (audit: AuditLogs, name: string): Promise<boolean> =>
  await Promise.resolve(
    audit.writes().some((write) => write.name === name && statusIn(write) === 'Signalled'),
  );

async function succeeds(refit: Refit, ...args: readonly string[]): Promise<void> {
  const { ok, stdout, stderr } = await refit.command(...args);
  if (!ok) throw new Error(`refit ${args.join(' ')}: ${stdout}${stderr}`);
}
