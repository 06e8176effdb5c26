/** Shows what the commands do and say if the Machines of one owner are one plan. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { updateOn } from '../../src/dialects/capi/plan/machine-update.ts';
import { RETRY_ANNOTATION } from '../../src/engine/model/controls.ts';
import { nodes } from '../../src/kube/resources.ts';
import { asUsual, type NextStep } from '../scenes/k0s.ts';
import { choose, openOwner } from '../scenes/machine-owner.ts';
import { Stage } from '../scenes/stage.ts';

async function openStage(next?: NextStep): Promise<Stage> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-owner-'));
  const stage = await Stage.open(directory);
  onTestFinished(async () => {
    await stage[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });
  await openOwner(stage, next && { next });
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
  expect(await stage.answer('status', '-o', 'wide')).toMatch(/w1 +done .*\n +w2 +done /);
});

const ROOM = 'it uses up room of MachineDeployment fleet/web (maxUnavailable)';

test('a hold of a Machine says that it uses up room of its owner once Cluster API has chosen it', async () => {
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
  expect(await stage.answer('status', '-o', 'wide')).toMatch(/w1 +done .*\n +w2 +done /);
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
