/** Tests that logs, objects and output do not contain the password and the token of a download URL. */
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { filledScript } from '../../src/dialects/kubeadm/host/filled-script.ts';
import { stageBody } from '../../src/dialects/kubeadm/host/scripts.ts';
import { nodes } from '../../src/kube/resources.ts';
import { ROLLOUT_ANNOTATION } from '../../src/signal/names.ts';
import { startMemoryCluster } from '../agent/memory-cluster.ts';
import { NEW, Rig } from '../agent/rig.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { runRefit } from '../testenv/refit-process.ts';

const SECRETS = /scout|hunter2|sesame/;

/** Returns the status of a plan that has signalled these nodes. */
function statusOf(nodes: readonly Rig[]): NonNullable<Plan['status']> {
  const state = 'SchedulableWait';
  const workers = nodes.map(({ host: { name }, created }) => ({
    name,
    state: 'SignalSent',
    lastUpdatedTimestamp: created,
  }));
  return { state, commands: [{ id: 0, state, k0supdate: { controllers: [], workers } }] };
}

/** For each node: the file that it requests, the faults of the download server, and the reason in its report. */
const FAILURES = [
  ['w1', '/new', [{ status: 403, times: 9 }], /127\.0\.0\.1/],
  ['w2', '/none', [], /127\.0\.0\.1.* answered 404/],
  ['w3', '/new', [], /sha256 of the download is/],
] as const;

test('downloads that get 403, 404 or other bytes than their hash show neither the password nor the token', async () => {
  await using things = new AsyncDisposableStack();
  const cluster = await startMemoryCluster();
  things.defer(async () => await cluster.stop());
  const { admin, kubeconfig } = cluster;
  const failed: Rig[] = [];
  const texts: string[] = [];
  const reasons: string[] = [];
  const platforms: Record<string, { url: string; sha256: string }> = {};
  for (const [name, path, faults, reason] of FAILURES) {
    const node = things.use(await Rig.start({ name, admin, kubeconfig, faults }));
    const sha256 = node.server.sha256('/next');
    const url = `${node.server.url.replace('//', '//scout:hunter2@')}${path}?token=sesame`;
    Object.assign(platforms, { 'linux-amd64': { url, sha256 }, 'linux-arm64': { url, sha256 } });
    const agent = node.startAgent();
    await node.send('/new', NEW, { url, sha256 });
    await node.end();
    expect(node.statuses.at(-1)).toBe('FailedDownload');
    const report = await node.report();
    expect(report?.reason).toMatch(reason);
    reasons.push(report?.reason ?? '');
    texts.push(agent.log.join('\n'), JSON.stringify(report));
    const labels = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };
    await admin.patch(nodes, name, { metadata: { labels } }, { type: 'merge' });
    failed.push(node);
  }
  const targets = { workers: listed(...FAILURES.map(([name]) => name)) };
  const commands = [{ k0supdate: buildUpdate({ platforms, targets }) }];
  const plan = buildPlan({ id: 'plan', commands }, statusOf(failed));
  const { resourceVersion: _version, ...metadata } = plan.metadata;
  const created = await admin.create(plans, { ...plan, metadata });
  for (const node of failed)
    await node.annotate({ [ROLLOUT_ANNOTATION]: `${created.metadata.uid}/${node.created}` });
  await admin.replace(plans, { ...created, status: statusOf(failed) }, { subresource: 'status' });
  const directory = await mkdtemp(join(tmpdir(), 'refit-secrets-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  const file = join(directory, 'plan.json');
  await writeFile(file, JSON.stringify(plan));
  const outputs: string[] = [];
  for (const args of [
    ['status'],
    ['status', '-o', 'json'],
    ['why'],
    ['preview', '-f', file],
    ['preview', '-f', file, '-o', 'json'],
  ]) {
    const { stdout, stderr } = await runRefit(...args, '--kubeconfig', kubeconfig);
    outputs.push([...stdout, ...stderr].join('\n'));
  }
  for (const reason of reasons) expect(outputs[0]).toContain(reason);
  for (const text of [...texts, ...outputs]) expect(text).not.toMatch(SECRETS);
});

test('a binary of a kubeadm manifest that cannot be downloaded: the script does not print the secrets of its URL', async () => {
  const binary = { url: 'https://scout:hunter2@c/kubeadm?token=sesame', sha256: 'ab'.repeat(32) };
  const directory = await mkdtemp(join(tmpdir(), 'refit-secrets-'));
  const binaries = { kubeadm: binary, kubelet: binary };
  const { script, values } = stageBody({ binaries });
  const own = { ROLLOUT: 'r', STEP: 'stage', VERSION: 'v1.36.3' };
  const input = `curl() { return 22; }\n${filledScript(script, { ...own, ...values })}`;
  await mkdir(join(directory, 'var/lib/refit'), { recursive: true });
  const env = { ...process.env, REFIT_ROOT: directory };
  const { status, stdout, stderr } = spawnSync('sh', ['-s'], { input, env, encoding: 'utf8' });
  await rm(directory, { recursive: true });
  expect(status).toBe(1);
  expect(stdout).toContain('binaries.kubeadm.url: cannot download https://***@c/kubeadm?***');
  expect(stdout + stderr).not.toMatch(SECRETS);
});
