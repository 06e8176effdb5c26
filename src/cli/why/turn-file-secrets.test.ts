/** Proves that the file of a turn contains no token that plans and Nodes of real clusters contain. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { buildCattlePlan } from '../../../test/support/builders/cattle-plans.ts';
import { DIALECTS, textsOf } from '../../../test/support/builders/dialects.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildViewParts, signalled } from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { jobs, type KubeObject, type Node, nodes } from '../../kube/resources.ts';
import { controlNodes } from '../../signal/names.ts';
import { inspectAll, seenIn } from '../status/observe.ts';
import { writeTurn } from './turn-file.ts';

const SECRET = 'hunter2';
const NOW = T0 + MINUTE;

/** Returns the text of the file about a plan in a cluster with these Nodes. */
async function fileAbout(name: string, plan: KubeObject, ...workers: Node[]): Promise<string> {
  const dialect = DIALECTS.find((each) => each.name === name);
  if (dialect === undefined) throw new Error(`no dialect ${name}`);
  const world = buildWorldOf([nodes, workers], [controlNodes, []], [jobs, []]);
  const loaded = { dialect, plans: () => [plan], world };
  const { inspections } = await inspectAll([loaded], buildViewParts(), NOW);
  expect(inspections).toHaveLength(1);
  const directory = await mkdtemp(join(tmpdir(), 'refit-turn-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const path = join(directory, 'turn.json');
  const leader = { state: 'none' } as const;
  await writeTurn(path, { now: NOW, leader, plans: inspections.map(seenIn) }, textsOf);
  return await readFile(path, 'utf8');
}

test('the file about a Plan of k0s contains neither the password nor the signature of its download URL', async () => {
  const url = `https://ada:${SECRET}@mirror.example/k0s?X-Amz-Expires=60&X-Amz-Signature=${SECRET}`;
  const k0supdate = buildUpdate({
    platforms: { 'linux-amd64': { url, sha256: 'ab'.repeat(32) } },
    targets: { workers: listed('w1', 'w2') },
  });
  const w1 = signalled(buildNode('w1'), { command: { url }, status: 'Downloading' });
  const text = await fileAbout(
    'autopilot',
    buildPlan({ commands: [{ k0supdate }] }),
    w1,
    buildNode('w2'),
  );
  expect(text).toContain('"url": "https://mirror.example"');
  expect(text).not.toContain(SECRET);
});

test('the file about a Plan of Rancher does not contain the token that K3s wrote into an annotation of its Node', async () => {
  const w1 = buildNode('w1', {
    labels: { 'kubernetes.io/hostname': 'w1' },
    annotations: { 'k3s.io/node-args': JSON.stringify(['agent', `-t=${SECRET}`]) },
  });
  const text = await fileAbout('cattle', buildCattlePlan('k3s'), w1);
  expect(text).toContain('k3s.io/node-args');
  expect(text).not.toContain(SECRET);
});
