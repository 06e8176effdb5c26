/** Tests pause, resume, abort and retry on a real API server, with the documented operator's rights only. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster } from '../../sandbox/cluster/cluster.ts';
import { createControlNode } from '../../sandbox/cluster/objects.ts';
import { buildStandIn } from '../../sandbox/hosts/stand-in.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import { CONTROL_PREFIX } from '../../src/dialects/cattle/plan/names.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { events, leases } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { buildCattlePlan } from '../support/builders/cattle-plans.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { controlPlane, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, type RefitResult, runRefit } from './refit-process.ts';

let admin: KubeClient;
let operator = '';
let viewer = '';

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  operator = await kubeconfigFor('operator');
  viewer = await kubeconfigFor('viewer');
});
afterAll(() => admin.close());

async function runControl(...args: readonly string[]): Promise<RefitResult> {
  return await runRefit(...args, '--kubeconfig', operator);
}

/** Runs the command, and checks that it succeeds and prints only to standard output. Returns the output. */
async function outputOf(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runControl(...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: [] });
  return stdout.join('\n');
}

async function refused(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runControl(...args);
  expect({ code, stdout, lines: stderr.length }).toEqual({ code: 1, stdout: [], lines: 1 });
  return stderr[0] ?? '';
}

describe('while a controller leads', () => {
  let controller: RefitProcess;
  beforeAll(async () => {
    const path = await kubeconfigFor('controller');
    controller = new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
  });
  afterAll(async () => expect(await controller.stop('SIGTERM')).toBe(0));

  test('while a plan is paused, nodes in progress finish and no other node starts, until refit resume', async () => {
    await using puppets = await Puppets.create(admin, 'controls-w1', 'controls-w2');
    await puppets.plan(1);
    await puppets.says('controls-w1', 'Restart');

    expect(await outputOf('pause')).toMatch(
      /^Plan autopilot \(id1\) is paused\.\nIn progress, will finish: controls-w1 Restart/,
    );
    expect(await outputOf('pause', '--plan', 'plan/autopilot')).toMatch(
      /^Plan autopilot \(id1\) is already paused\./,
    );
    await puppets.says('controls-w1', 'Completed');
    await puppets.until(async () =>
      expect(await puppets.recorded()).toEqual({
        'controls-w1': 'SignalCompleted',
        'controls-w2': 'SignalPending',
      }),
    );
    await puppets.until(async () =>
      expect((await admin.get(plans, 'autopilot')).status?.state).toBe('Schedulable'),
    );
    const why = (await runRefit('why', '--kubeconfig', viewer)).stdout.join('\n');
    expect(why).toContain('the plan is paused: nothing new starts until it is resumed');
    expect(why).toContain(
      '\n  ends    when the plan is resumed (refit resume, or refit resume --plan NAME if there are several plans)\n',
    );
    expect(await puppets.signal('controls-w2')).toBeUndefined();

    expect(await outputOf('resume')).toBe('Plan autopilot (id1) continues.\nNext: controls-w2.');
    await puppets.until(async () =>
      expect(await eventsOf('autopilot')).toContain(
        'Normal Resumed No longer blocked: starting controls-w2\n',
      ),
    );
    await puppets.says('controls-w2', 'Completed');
    expect(await puppets.end()).toMatchObject({ state: 'Completed' });
    expect(await refused('pause')).toContain(
      'REFIT_CONTROL: Plan autopilot (id1) is done: nothing is left to pause',
    );
  });

  test('refit abort cancels downloads and drains, removes only cordons of Refit, and lets other nodes finish', async () => {
    await using puppets = await Puppets.create(
      admin,
      'controls-a1',
      'controls-a2',
      'controls-a3',
      'controls-a4',
      'controls-a5',
    );
    for (const name of ['controls-a2', 'controls-a3']) await puppets.addLastingPod(name);
    await puppets.cordonByHand('controls-a3');
    await puppets.plan(4);
    await puppets.says('controls-a1', 'Downloading');
    for (const name of ['controls-a2', 'controls-a3']) await puppets.says(name, 'Cordoning');
    await puppets.says('controls-a4', 'Restart');
    await puppets.until(async () => expect(await puppets.cordon('controls-a2')).toBe('ours'));

    const said = await outputOf('abort', '--reason', 'wrong release');
    expect(said.split('\n')).toEqual([
      'Plan autopilot (id1) is aborted: wrong release.',
      'The leader cancels the signal of: controls-a1, controls-a2, controls-a3.',
      'The leader uncordons: controls-a2.',
      expect.stringMatching(/^In progress, will finish: controls-a4 Restart \(.*\)\.$/),
      'The plan ends as failed when no node is in progress any more.',
    ]);
    for (const name of ['controls-a1', 'controls-a2', 'controls-a3']) {
      await puppets.until(async () =>
        expect((await puppets.signal(name))?.status?.status).toBe('Failed'),
      );
      expect(await puppets.reason(name)).toBe('the plan was aborted: wrong release');
    }
    await puppets.until(async () => expect(await puppets.cordon('controls-a2')).toBe('none'));
    expect(await outputOf('abort')).toMatch(
      /^Plan autopilot \(id1\) is already being aborted \(wrong release\)\./,
    );
    const why = (await runRefit('why', '--kubeconfig', viewer)).stdout.join('\n');
    expect(why).toContain(
      'the plan was aborted: wrong release; nothing new starts; the leader stops the work where it still can, and the other nodes in progress finish',
    );

    await puppets.says('controls-a4', 'Completed');
    expect(await puppets.end()).toEqual({
      state: 'ApplyFailed',
      description: 'Aborted: the plan was aborted: wrong release',
    });
    expect(await puppets.recorded()).toMatchObject({
      'controls-a4': 'SignalCompleted',
      'controls-a5': 'SignalPending',
    });
    expect([await puppets.cordon('controls-a2'), await puppets.cordon('controls-a3')]).toEqual([
      'none',
      'foreign',
    ]);
    expect(await puppets.signal('controls-a5')).toBeUndefined();
    for (const name of puppets.names)
      expect((await puppets.node(name)).spec?.taints ?? []).not.toContainEqual(
        expect.objectContaining({ key: 'upgrade.refit.dev/pending' }),
      );
    expect(await refused('retry', 'controls-a1')).toContain(
      'was aborted, so no node of it can be retried; to start again: delete the Plan',
    );
    expect(await refused('resume')).toContain('was aborted (wrong release) and cannot be resumed');
  });

  test('refit retry runs a failed node and its plan again, and refuses a node that has not failed', async () => {
    await using puppets = await Puppets.create(admin, 'controls-r1', 'controls-r2');
    await puppets.plan(1);
    await puppets.says('controls-r1', 'FailedDownload');
    expect(await puppets.end()).toMatchObject({ state: 'ApplyFailed' });
    const before = await puppets.signal('controls-r1');

    expect(await refused('retry', 'controls-r9')).toContain(
      'controls-r9 is not a target of Plan autopilot (id1)',
    );
    expect(await refused('retry', 'controls-r2')).toContain(
      'controls-r2 of Plan autopilot (id1) has not failed: it is pending',
    );
    expect(await outputOf('retry', 'controls-r1')).toBe(
      'controls-r1 of Plan autopilot (id1) will be tried again.\nIt starts when the nodes before it have started, its gates pass and the failure budget allows it.',
    );
    await puppets.until(async () =>
      expect((await puppets.signal('controls-r1'))?.created).not.toBe(before?.created),
    );
    expect((await puppets.signal('controls-r1'))?.status).toBeUndefined();
    expect(await refused('retry', 'controls-r1')).toContain(
      'controls-r1 of Plan autopilot (id1) has not failed: it is signalled',
    );

    await puppets.says('controls-r1', 'FailedDownload');
    expect(await puppets.end()).toMatchObject({ state: 'ApplyFailed' });
    await outputOf('retry', 'controls-r1');
    for (const name of puppets.names) await puppets.says(name, 'Completed');
    expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  });

  test('a Plan that is deleted while it runs leaves no active signal and no cordon of Refit', async () => {
    await using puppets = await Puppets.create(
      admin,
      'controls-d1',
      'controls-d2',
      'controls-d3',
      'controls-d4',
    );
    for (const name of ['controls-d2', 'controls-d3']) await puppets.addLastingPod(name);
    await puppets.cordonByHand('controls-d3');
    await puppets.plan(3);
    await puppets.says('controls-d1', 'Downloading');
    for (const name of ['controls-d2', 'controls-d3']) await puppets.says(name, 'Cordoning');
    await puppets.until(async () => expect(await puppets.cordon('controls-d2')).toBe('ours'));
    await puppets.until(async () =>
      expect((await puppets.node('controls-d4')).spec?.taints).toHaveLength(1),
    );
    await admin.delete(plans, 'autopilot');
    for (const name of ['controls-d1', 'controls-d2', 'controls-d3']) {
      await puppets.until(async () =>
        expect((await puppets.signal(name))?.status?.status).toBe('Failed'),
      );
      expect(await puppets.reason(name)).toBe('its plan was deleted');
    }
    await puppets.until(async () => expect(await puppets.cordon('controls-d2')).toBe('none'));
    expect(await puppets.cordon('controls-d3')).toBe('foreign');
    await puppets.until(async () =>
      expect((await puppets.node('controls-d4')).spec?.taints ?? []).toEqual([]),
    );
  });

  test('a ControlNode that is deleted while its Node is drained fails the plan, and leaves that Node no cordon', async () => {
    const name = 'controls-c1';
    await using puppets = await Puppets.create(admin, name);
    await puppets.addLastingPod(name);
    await createControlNode(admin, name, '127.0.0.1', 'controller+worker');
    const { metadata, ...rest } = buildPlan({
      commands: [
        { k0supdate: buildUpdate({ targets: { controllers: listed(name), workers: listed() } }) },
      ],
    });
    await admin.create(plans, { ...rest, metadata: { name: metadata.name } });
    await puppets.until(async () => {
      const object = await admin.get(controlNodes, name);
      const data = decodeSignal(object.metadata.annotations);
      if (!data) throw new Error(`${name} has no signal`);
      const signal = encodeSignal({
        ...data,
        status: { status: 'Cordoning', timestamp: data.created },
      });
      await admin.patch(
        controlNodes,
        name,
        { metadata: { annotations: signal } },
        { type: 'merge' },
      );
    });
    await puppets.until(async () => expect(await puppets.cordon(name)).toBe('ours'));

    await admin.delete(controlNodes, name);
    expect((await puppets.end()).state).toBe('ApplyFailed');
    await puppets.until(async () => expect(await puppets.cordon(name)).toBe('none'));
  });
});

test('without --reason, the user is the reason', async () => {
  await using puppets = await Puppets.create(admin, 'controls-n1');
  await puppets.plan(1);
  await admin.delete(leases, LEADER_LEASE.name, LEADER_LEASE);
  const said = await outputOf('abort');
  expect(said).toMatch(/^Plan autopilot \(id1\) is aborted: by refit-operator\.\n/);
  expect(said).toMatch(
    /\nNo leader: no refit controller holds lease \S+\. No new node starts until one runs\.$/,
  );
});

test('a viewer may not pause or abort, and nothing is written', async () => {
  await using puppets = await Puppets.create(admin, 'controls-v1');
  const { metadata } = await puppets.plan(1);
  for (const args of [['pause'], ['abort', '--reason', 'x']]) {
    const { code, stdout, stderr } = await runRefit(...args, '--kubeconfig', viewer);
    expect({ code, stdout }).toEqual({ code: 4, stdout: [] });
    expect(stderr).toEqual([
      expect.stringMatching(
        /^REFIT_FORBIDDEN: .*cannot patch resource "plans".*`refit install controller` prints both/,
      ),
    ]);
  }
  expect((await admin.get(plans, 'autopilot')).metadata.resourceVersion).toBe(
    metadata.resourceVersion,
  );
});

test('a Plan of the system-upgrade-controller can be paused and aborted the same way; what it cannot do is refused', async () => {
  const { metadata, ...rest } = buildCattlePlan('controls-image', {
    nodeSelector: { matchLabels: { pool: 'controls-none' } },
  });
  const namespace = 'default';
  await admin.create(
    cattlePlans,
    { ...rest, metadata: { name: metadata.name, namespace } },
    { namespace },
  );
  const annotations = async (): Promise<object | undefined> =>
    (await admin.get(cattlePlans, metadata.name, { namespace })).metadata.annotations;
  try {
    expect(await outputOf('pause')).toMatch(/^Plan default\/controls-image \(\w+\) is paused\.\n/);
    expect(await annotations()).toEqual({
      [`${CONTROL_PREFIX}pause`]: expect.stringMatching(/^20\d\d-.*Z$/) as string,
    });
    expect(await outputOf('resume', '--plan', 'cattle/default/controls-image')).toContain(
      'continues.',
    );
    expect(await annotations()).toBeUndefined();
    await outputOf('abort', '--reason', 'wrong image');
    expect(await annotations()).toEqual({ [`${CONTROL_PREFIX}abort`]: 'wrong image' });
    expect(await refused('retry', 'controls-w1')).toContain(
      'was aborted, so no node of it can be retried; to start again: remove the annotation',
    );
    await using puppets = await Puppets.create(admin, 'controls-s1');
    await puppets.plan(1);
    const { code, stderr } = await runControl('pause');
    expect(code).toBe(2);
    expect(stderr[0]).toContain(
      'several plans are possible: autopilot/autopilot, cattle/default/controls-image (name one of them with --plan)',
    );
  } finally {
    await admin.delete(cattlePlans, metadata.name, { namespace });
  }
});

test('without a plan, and with one of another name', async () => {
  expect(await refused('pause')).toContain('REFIT_CONTROL: there is no plan');
  await using puppets = await Puppets.create(admin, 'controls-p1');
  await puppets.plan(1);
  expect(await refused('pause', '--plan', 'plan/other')).toContain(
    'there is no plan plan/other; there is autopilot/autopilot',
  );
});

interface Spoilt {
  readonly name: string;
  /** The field of the platform, in the plan, that gets the wrong value. */
  readonly field: 'url' | 'sha256';
  readonly wrong: (downloads: string) => string;
  readonly why: string;
}

const SPOILT: readonly Spoilt[] = [
  {
    name: 'a bad hash',
    field: 'sha256',
    wrong: () => 'ab'.repeat(32),
    why: 'worker1: FailedDownload: sha256 of the download is .*, wanted (ab)+',
  },
  {
    name: 'a release that crashes soon after it answered',
    field: 'url',
    wrong: (downloads) => `${downloads}/crashes/k0s`,
    why: String.raw`worker1: crash loop: .* \(its previous version runs again\)`,
  },
];

test.each(SPOILT)(
  '$name: refit why and Events report the failure; after a fix in the plan, refit retry completes it',
  async ({ field, wrong, why }) => {
    const directory = await mkdtemp(join(tmpdir(), 'refit-controls-'));
    const from = 'v1.36.3+k0s.0';
    const to = 'v1.36.3+k0s.2';
    const crashes = join(directory, 'crashes');
    await buildStandIn({ version: to, path: crashes, broken: 'crashes-later' });
    const cluster = await startCluster({
      plane: { url: controlPlane().url, kubeconfig: kubeconfigFor },
      directory,
      controllers: 0,
      workers: 1,
      version: from,
      offers: [to],
      files: { '/crashes/k0s': crashes },
      restartDelayMs: 100,
      agentFlags: ['--soak', '3s', '--unverified-downloads', 'allow'],
    });
    try {
      await cluster.startController('refit-controller');
      const plan = cluster.plan({ id: 'spoilt', version: to, concurrent: 1 });
      const platform = plan.spec.commands[0]?.k0supdate?.platforms['linux-amd64'] ?? { url: '' };
      const right = platform[field];
      platform[field] = wrong(cluster.downloads.url);
      if (field === 'url') delete platform.sha256;
      await cluster.client.create(plans, plan);
      const state = async (): Promise<string | undefined> =>
        (await admin.get(plans, 'autopilot')).status?.state;
      await expect.poll(state, PATIENCE).toBe('ApplyFailed');
      const said = (await runRefit('why', '--kubeconfig', viewer)).stdout.join('\n');
      expect(said).toMatch(
        new RegExp(
          `${why.replace('worker1:', 'worker1 failed \\(.*\\):')}\\n {2}to do .*refit retry worker1\\. If the release is bad: run refit upgrade VERSION, which replaces this Plan\\.$`,
          'm',
        ),
      );
      for (const name of ['autopilot', 'worker1']) {
        await expect
          .poll(async () => await eventsOf(name), PATIENCE)
          .toMatch(new RegExp(`^Warning TargetFailed ${why}$`, 'm'));
      }
      expect(await cluster.hosts[0]?.version()).toBe(from);

      const path = `/spec/commands/0/k0supdate/platforms/linux-amd64/${field}`;
      const patch = JSON.stringify([{ op: 'replace', path, value: right }]);
      expect(
        (
          await kubectlAs('operator', [
            'patch',
            'plans.autopilot.k0sproject.io',
            'autopilot',
            '--type=json',
            '-p',
            patch,
          ])
        ).ok,
      ).toBe(true);
      await outputOf('retry', 'worker1');
      await expect.poll(state, PATIENCE).toBe('Completed');
      expect(await cluster.hosts[0]?.version()).toBe(to);
    } finally {
      await admin.delete(plans, 'autopilot').catch(() => undefined);
      await cluster.stop();
      await rm(directory, { recursive: true });
    }
  },
);

/** Returns one line for each Event: its type, reason and message. */
async function eventsOf(name: string): Promise<string> {
  const { items } = await admin.listAll(events, { fieldSelector: `involvedObject.name=${name}` });
  return items.map(({ type, reason, message }) => `${type} ${reason} ${message}\n`).join('');
}
