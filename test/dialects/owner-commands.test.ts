/** Shows what the commands do and say if the Machines of one owner are one plan. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { updateOn } from '../../src/dialects/capi/plan/machine-update.ts';
import { RETRY_ANNOTATION } from '../../src/engine/model/controls.ts';
import { nodes } from '../../src/kube/resources.ts';
import { asUsual, type NextStep } from '../scenes/k0s.ts';
import { policyWith } from '../scenes/k0s-scene.ts';
import { choose, openOwner } from '../scenes/machine-owner.ts';
import { Stage } from '../scenes/stage.ts';

async function openStage(next?: NextStep, policy?: UpgradePolicySpec): Promise<Stage> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-owner-'));
  const stage = await Stage.open(directory);
  onTestFinished(async () => {
    await stage[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });
  const before = async (): Promise<void> => {
    if (policy) await stage.create(upgradePolicies, policyWith(policy));
  };
  await openOwner(stage, { before, ...(next && { next }) });
  return stage;
}

/** The first attempt of w1 fails, and every other attempt succeeds. */
function failingOnce(): NextStep {
  let first: string | undefined;
  return (step) => {
    if (step.name !== 'w1') return asUsual(step);
    first ??= step.signal.created;
    return step.signal.created === first && step.status === 'Downloading'
      ? { status: 'FailedDownload' }
      : asUsual(step);
  };
}

/** The requests of w1 and w2, of which w1 fails before w2 starts. */
async function failFirst(): Promise<Stage> {
  const stage = await openStage(failingOnce());
  await choose(stage, 'w1');
  await stage.wait(30);
  await choose(stage, 'w2');
  await stage.wait(5);
  return stage;
}

async function requestOn(stage: Stage, name: string): Promise<string | undefined> {
  return updateOn(await stage.client.get(nodes, name))?.uid;
}

test.each([
  ['the Node', ['w1']],
  ['the Machine', ['machine/machine-of-w1']],
  ['the Machine alone', ['machine-of-w1']],
  ['the Machine with its namespace', ['fleet/machine-of-w1']],
  ['the Node and its plan', ['w1', '--plan', 'capi/fleet/web']],
  ['the Machine and its owner', ['machine-of-w1', '--plan', 'machinedeployment/web']],
])('a retry that names %s keeps the request, and so the place in the order', async (_, names) => {
  const stage = await failFirst();
  const before = await requestOn(stage, 'w1');
  const said = await stage.answer('retry', ...names);
  expect(said).toMatch(
    /^w1 of MachineDeployment fleet\/web of Cluster zoo .*will be tried again\.\n/,
  );
  expect(await requestOn(stage, 'w1')).toBe(before);
  const { annotations = {} } = (await stage.client.get(nodes, 'w1')).metadata;
  expect(annotations[RETRY_ANNOTATION]).toMatch(/^w1@/);
  await stage.wait(60);
  expect(await stage.answer('status', '-o', 'wide')).toMatch(
    /machine-of-w1 +done .*\n +w2 +machine-of-w2 +done /,
  );
});

const ROOM = 'this Machine uses up room of MachineDeployment fleet/web (maxUnavailable)';

test('a hold of a Machine says that this Machine uses up room of its owner once Cluster API has chosen it', async () => {
  const stage = await openStage();
  expect(await stage.answer('hold', 'w3')).not.toContain('maxUnavailable');
  await choose(stage, 'w1');
  await stage.wait(5);
  expect(await stage.answer('hold', 'w1')).not.toContain('maxUnavailable');
  expect(await stage.answer('hold', 'machine/machine-of-w2')).toContain(
    `If Cluster API chooses the Machine of w2: while w2 is held, ${ROOM}, so other Machines of it may wait.\n`,
  );
  await choose(stage, 'w2');
  await stage.wait(5);
  expect(await stage.answer('hold', 'w2')).toContain(
    `Cluster API has chosen the Machine of w2 already: while w2 is held, ${ROOM}`,
  );
  const effect = `while Cluster API waits for a held Machine that it has chosen, ${ROOM}`;
  expect(await stage.answer('why')).toContain(effect);
  expect(await stage.answer('why', 'w2')).toContain(effect);
  expect(await stage.answer('why', 'w1')).not.toContain(effect);
});

test('a retry of a Machine that has not failed says so, and changes nothing', async () => {
  const stage = await failFirst();
  expect(await stage.answer('retry', 'machine/machine-of-w2')).toMatch(
    /^REFIT_CONTROL: w2 of MachineDeployment fleet\/web .* has not failed: it is pending/,
  );
});

test('a retry of an aborted plan starts it again, and no Machine loses its place', async () => {
  const stage = await failFirst();
  const before = await requestOn(stage, 'w1');
  await stage.answer('retry', 'w1');
  await stage.wait(2);
  await stage.answer('abort', 'capi/fleet/web', '--reason', 'wrong release');
  await stage.wait(30);
  const advice = 'refit retry capi/fleet/web';
  expect(await stage.answer('why')).toContain(`To start again: run ${advice}.`);
  expect(await stage.answer('retry', 'w1')).toContain(`to start again: run ${advice}`);
  expect(await stage.answer('retry', 'capi/fleet/web', '--dry-run', 'server')).toContain(
    'will start again',
  );
  expect(await stage.answer('retry', 'capi/fleet/web')).toMatch(
    /^MachineDeployment fleet\/web .*will start again\.\nw1, w2 will be tried again\.\n/,
  );
  await stage.wait(60);
  expect(await requestOn(stage, 'w1')).toBe(before);
  expect(await stage.answer('status', '-o', 'wide')).toMatch(
    /machine-of-w1 +done .*\n +w2 +machine-of-w2 +done /,
  );
});

test('an aborted plan without a failed Machine starts again, too', async () => {
  const stage = await openStage();
  await choose(stage, 'w1');
  await stage.wait(60);
  await stage.answer('abort', 'capi/fleet/web', '--reason', 'wrong release');
  await stage.wait(5);
  await choose(stage, 'w2');
  await stage.wait(5);
  expect(await stage.answer('status')).toContain('failed 1/3');
  await stage.answer('retry', 'fleet/web');
  await stage.wait(60);
  expect(await stage.answer('status')).toContain('running 2/3');
});

const TITLE = 'MachineDeployment fleet/web of Cluster zoo';

test('the title of the plan names the owner, and no uid', async () => {
  const stage = await failFirst();
  for (const command of [['status'], ['why'], ['report', '-o', 'markdown']])
    expect(await stage.answer(...command)).toMatch(new RegExp(`^(?:# )?${TITLE}(?:  |\\n)`));
  expect(await stage.answer('pause', 'machinedeployment/web')).toContain(`${TITLE} has failed`);
});

test.each(['capi/fleet/web', 'fleet/web', 'web', 'MachineDeployment/web', 'node/w1'])(
  'the plan of an owner is found as %s',
  async (name) => {
    const stage = await openStage();
    await choose(stage, 'w1');
    await stage.wait(5);
    expect(await stage.answer('pause', name)).toContain(`${TITLE} is paused.`);
  },
);

test('the approval that a wave waits for names the plan, not the Node that represents it', async () => {
  const stage = await openStage(undefined, { waves: [{ count: 1 }, { approval: 'Manual' }] });
  await choose(stage, 'w1');
  await stage.wait(60);
  await choose(stage, 'w2');
  await stage.wait(5);
  const command = 'refit approve capi/fleet/web --wave 2';
  expect(await stage.answer('why')).toContain(`when somebody approves the wave: ${command}\n`);
  expect(stage.journal.messages.join('\n')).toContain(command);
  expect(await stage.answer('approve', 'capi/fleet/web', '--wave', '2')).toContain('approved');
  await stage.wait(60);
  expect(await stage.answer('status')).toContain('running 2/3');
});

test('a Machine that Cluster API has not chosen is not among the next ones', async () => {
  const stage = await openStage();
  await choose(stage, 'w1');
  await stage.wait(60);
  expect(await stage.answer('why')).not.toMatch(/^ +next /m);
  expect(await stage.answer('pause', 'capi/fleet/web')).toContain('paused');
  await stage.wait(2);
  await choose(stage, 'w3');
  await stage.wait(2);
  expect(await stage.answer('resume', 'capi/fleet/web')).toMatch(/^Next: w3\.$/m);
});

test('a preview does not claim how many Machines are updated at the same time', async () => {
  const stage = await openStage();
  await choose(stage, 'w1');
  await stage.wait(60);
  const said = await stage.answer('preview');
  expect(said).toContain(
    'workers to v1.36.3+k0s.2, as many at a time as Cluster API chooses, 1 done\n    left     w2, w3\n',
  );
  expect(said).not.toContain('takes');
});

test.each(['machine-of-w3', 'fleet/machine-of-w3', 'machine/machine-of-w3', 'w3'])(
  'refit why explains %s',
  async (name) => {
    const stage = await openStage();
    await choose(stage, 'w1');
    await stage.wait(30);
    const said = await stage.answer('why', name);
    expect(said).toMatch(/^w3 {2}worker of MachineDeployment fleet\/web/);
    expect(said).toContain('Cluster API has not chosen the next Machine yet');
    expect(said).toMatch(/^ +machine +fleet\/machine-of-w3$/m);
    expect(await stage.answer('status', '-o', 'wide')).toMatch(
      /NODE +MACHINE .*\n +w1 +machine-of-w1 /,
    );
  },
);
