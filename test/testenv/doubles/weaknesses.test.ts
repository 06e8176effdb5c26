/**
 * Tests that the doubles of k0s have the original's weaknesses. The name of a test contains the number of its weakness.
 */
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { plans } from '../../../src/api/autopilot/plan.ts';
import { nodes, type Resource } from '../../../src/kube/resources.ts';
import { SIGNAL_DATA_ANNOTATION } from '../../../src/signal/names.ts';
import { NEW, OLD } from '../../support/doubles/payload-files.ts';
import { loadRecording } from '../../support/doubles/recorded-plan.ts';
import { runRecorded } from '../../support/doubles/recorded-run.ts';
import { type Stage, startStage } from '../../support/doubles/stage.ts';
import { signalled, statusOf } from '../../support/doubles/write-lines.ts';
import { testOneIn } from '../../support/whole.ts';

const test = testOneIn(2);

const C3 = { controllers: ['c3'] };

async function touch(stage: Stage, resource: Resource, name: string): Promise<void> {
  const annotations = { 'example.com/touched': String(performance.now()) };
  await stage.client.patch(resource, name, { metadata: { annotations } }, { type: 'merge' });
}

/** Makes the first `times` writes of `SignalSent` to the plan's status conflict with another write. */
function conflictWhenSent(stage: Stage, times: number): void {
  let left = times;
  stage.recorder.hold = async ({ resource, status }) => {
    if (
      resource !== 'plans/status' ||
      !JSON.stringify(status).includes('SignalSent') ||
      left-- <= 0
    )
      return;
    await touch(stage, plans, 'autopilot');
  };
}

test('#3: after a conflict on the plan status, the k0s leader signals another worker, although concurrent is 1', async () => {
  const recording = loadRecording('03x-plan-status-conflict-oversignals');
  // In the recording, three workers are in progress although `concurrent` is 1.
  expect(new Set(signalled(recording.writes))).toEqual(new Set(['w1', 'w2', 'w3']));
  const workers = ['w1', 'w2', 'w3'];
  await using stage = await startStage({
    ...C3,
    workers,
    picks: workers,
    faults: [{ paceMs: 60_000, times: 3 }],
  });
  conflictWhenSent(stage, 2);
  await stage.create(recording.plan(stage.downloads));
  for (const name of workers)
    await stage.until(async () => expect(await stage.status(name)).toBe('Downloading'));
  await stage.until(() => expect(stage.downloads.requests).toHaveLength(3));
});

test('#3: after conflicts on the plan status, all k0s controllers restart at the same time', async () => {
  const recording = loadRecording('03z-plan-status-conflict-controllers');
  const controllers = ['c3', 'c1', 'c2'];
  expect(new Set(signalled(recording.writes))).toEqual(new Set(controllers));
  await using stage = await startStage({
    controllers,
    picks: controllers,
    versions: { c1: NEW, c2: NEW, c3: NEW },
  });
  conflictWhenSent(stage, 2);
  // Each controller delays its restart until all controllers are ready to restart. The original does not prevent that.
  const ready = new Set<string>();
  const { hold } = stage.recorder;
  stage.recorder.hold = async (write) => {
    await hold(write);
    if (write.resource !== 'controlnodes' || statusOf(write.annotations ?? {}) !== 'Restart')
      return;
    ready.add(write.via);
    await stage.until(() => expect(ready.size).toBe(controllers.length));
  };
  await stage.create(recording.plan(stage.downloads));
  await stage.until(() =>
    expect(controllers.map((name) => stage.host(name).pid)).toEqual(
      controllers.map(() => undefined),
    ),
  );
});

test('#11: k0s restarts a controller of the plan although another controller, not in the plan, is down', async () => {
  await using stage = await startStage({ controllers: ['c3', 'c1'] });
  await stage.host('c1').powerOff();
  const plan = loadRecording('08e-controllers-unparsable').plan(stage.downloads);
  const [command] = plan.spec.commands;
  if (command?.k0supdate) {
    command.k0supdate = { ...command.k0supdate, version: NEW, forceupdate: true };
    command.k0supdate.targets = { controllers: { discovery: { static: { nodes: ['c3'] } } } };
  }
  await stage.create(plan);
  await stage.until(() => expect(stage.host('c3').starts).toBe(2));
});

test('#20: in k0s, an edit of a failed plan has no effect', async () => {
  await using run = await runRecorded('03b-wrong-sha', { ...C3, workers: ['w3'] });
  const { stage, recording } = run;
  await stage.untilPlan('ApplyFailed');
  const { commands } = recording.plan(stage.downloads).spec;
  const right = JSON.parse(
    JSON.stringify(commands).replace(
      stage.downloads.sha256('/b/k0s-old'),
      stage.downloads.sha256('/b/k0s-new'),
    ),
  );
  await stage.client.patch(
    plans,
    'autopilot',
    { spec: { id: 'corrected', commands: right } },
    { type: 'merge' },
  );
  await run.untilAsRecorded();
  // #19: neither the plan nor the Node shows the reason.
  const { status } = await stage.client.get(plans, 'autopilot');
  expect(status?.commands[0]).not.toHaveProperty('description');
  expect(JSON.stringify(await stage.client.get(nodes, 'w3'))).not.toContain('hash');
  expect(stage.logs.get('w3')?.join('')).toContain('the hash is another one');
});

test('#32: in k0s, a plan with a command of unknown kind gets no status', async () => {
  await using run = await runRecorded('10c-item-with-neither', C3);
  await run.stage.until(() =>
    expect(run.stage.logs.get('c3')?.join('')).toContain('of no known kind'),
  );
  await run.untilAsRecorded();
  expect(await run.stage.client.get(plans, 'autopilot')).not.toHaveProperty('status');
});

test('a plan without commands is refused by the API server again and again', async () => {
  await using run = await runRecorded('10e-no-commands', C3);
  const refused = () =>
    run.stage.recorder.writes.filter(
      ({ resource, code }) => resource === 'plans/status' && code === 422,
    );
  await run.stage.until(() => expect(refused().length).toBeGreaterThan(5));
});

test('#38: in k0s, each write conflict at the end of a download causes another download', async () => {
  await using stage = await startStage({ ...C3, workers: ['w1'] });
  let left = 3;
  stage.recorder.hold = async ({ via, annotations = {} }) => {
    if (via === 'w1' && statusOf(annotations) === 'Cordoning' && left-- > 0)
      await touch(stage, nodes, 'w1');
  };
  await stage.create(loadRecording('06-two-k0supdates').plan(stage.downloads));
  await stage.until(async () => expect(await stage.status('w1')).toBe('Completed'));
  // There are at least the three conflicts that the test causes. Any other write of the Node causes one more.
  const conflicts = stage.recorder.writes.filter(
    ({ via, code, annotations = {} }) =>
      via === 'w1' && code === 409 && statusOf(annotations) === 'Cordoning',
  ).length;
  expect(conflicts).toBeGreaterThanOrEqual(3);
  // A stale cache can also cause a download.
  const downloads = stage.downloads.requests.filter(({ complete }) => complete).length;
  expect(downloads).toBeGreaterThanOrEqual(1 + conflicts);
});

test('#41: a killed download leaves its file behind for good', async () => {
  await using stage = await startStage({ ...C3, workers: ['w1'], faults: [{ paceMs: 60_000 }] });
  await stage.create(loadRecording('06-two-k0supdates').plan(stage.downloads));
  await stage.until(() => expect(stage.downloads.requests).toHaveLength(1));
  stage.double('w1').crash();
  await stage.until(async () => expect(await stage.status('w1')).toBe('Completed'));
  const left = (await readdir(dirname(stage.host('w1').binary))).filter((name) =>
    name.startsWith('.k0s.tmp.'),
  );
  expect(left).toHaveLength(1);
  expect(stage.downloads.requests.map(({ from }) => from)).toEqual([0, 0]);
});

test('#63: k0s removes unknown fields from a signal when it writes the next status', async () => {
  await using stage = await startStage({ ...C3, workers: ['w1'], versions: { w1: OLD } });
  const command = { id: 0, k0supdate: { url: `${stage.downloads.url}/x`, version: OLD, later: 1 } };
  const data = JSON.stringify({ planId: 'p', created: 'now', command, extra: true });
  const annotations = {
    [SIGNAL_DATA_ANNOTATION]: data,
    'k0sproject.io/autopilot-signal-version': 'v2',
    mine: 'kept',
  };
  await stage.client.patch(nodes, 'w1', { metadata: { annotations } }, { type: 'merge' });
  await stage.until(async () => expect(await stage.status('w1')).toBe('Completed'));
  const { metadata } = await stage.client.get(nodes, 'w1');
  expect(metadata.annotations?.[SIGNAL_DATA_ANNOTATION]).not.toMatch(/later|extra/);
  expect(metadata.annotations?.['mine']).toBe('kept');
});

test('#64: after a plan with a wrong version, a correct k0s plan completes but leaves the node cordoned', async () => {
  await using run = await runRecorded('04-wrong-version', {
    ...C3,
    workers: ['w3'],
    picks: ['w3', 'w3'],
  });
  const { stage } = run;
  await run.untilAsRecorded();
  await stage.deletePlan();
  await stage.create(loadRecording('04b-recovery-plan-leaves-cordoned').plan(stage.downloads));
  await stage.untilPlan('Completed');
  expect(await stage.isCordoned('w3')).toBe(true);
});

test('#1: k0s installs a downloaded file that is not a program, and the plan waits', async () => {
  await using stage = await startStage({ ...C3, workers: ['w3'] });
  const plan = loadRecording('03b-wrong-sha').plan(stage.downloads);
  const platforms = { 'linux-amd64': { url: `${stage.downloads.url}/w/garbage` } };
  const [command] = plan.spec.commands;
  if (command?.k0supdate) command.k0supdate.platforms = platforms;
  await stage.create(plan);
  const host = stage.host('w3');
  await stage.until(() => expect(host.starts).toBeGreaterThan(3));
  await expect(host.version()).rejects.toThrow();
  expect(await readFile(host.binary)).toEqual(await readFile(join(stage.directory, 'garbage')));
  expect(await stage.planState()).toBe('SchedulableWait');
});

test('#24: in k0s, a worker that is not Ready holds the plan, and the failure of another worker is ignored', async () => {
  const faults = [{ node: 'w1', status: 503 }];
  const versions = { w1: NEW };
  await using stage = await startStage({
    ...C3,
    workers: ['w1', 'w2'],
    picks: ['w1', ...Array<string>(500).fill('w2')],
    faults,
    versions,
  });
  const plan = loadRecording('10a-concurrent-0').plan(stage.downloads);
  const workers = plan.spec.commands[0]?.k0supdate?.targets.workers;
  if (workers) workers.limits = { concurrent: 2 };
  plan.spec.id = 'unready';
  await stage.unready('w2');
  await stage.create(plan);
  await stage.until(async () => expect(await stage.status('w1')).toBe('FailedDownload'));
  expect(await stage.planState()).toBe('Schedulable');
});

test('airgap: a bundle is called what the server calls it, made harmless', async () => {
  const server = createServer((_, response) => {
    response
      .writeHead(200, { 'content-disposition': 'attachment; filename="my na:me.tar"' })
      .end('bundle');
  });
  await using things = new AsyncDisposableStack();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  things.defer(() => void server.close());
  await using stage = await startStage({ ...C3, workers: ['w3'] });
  const plan = loadRecording('05b-airgap-content-disposition').plan(stage.downloads);
  const [command] = plan.spec.commands;
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/bundle20.tar`;
  if (command?.airgapupdate) command.airgapupdate.platforms = { 'linux-amd64': { url } };
  await stage.create(plan);
  await stage.untilPlan('Completed');
  expect(await readdir(join(stage.host('w3').dataDirectory, 'images'))).toEqual(['my na_me.tar']);
});

test('#22 and #34: a k0s worker whose Node has another name stops after 120 refusals, and only logs this', async () => {
  await using stage = await startStage(C3);
  const stray = await stage.addStray('w4', 'node4');
  await stage.until(() => expect(stage.logs.get('w4')?.join('')).toContain('given up'));
  const refused = stage.recorder.writes.filter(({ via }) => via === 'w4');
  expect(refused).toHaveLength(120);
  expect(new Set(refused.map(({ resource, code }) => `${resource} ${code}`))).toEqual(
    new Set(['leases 403']),
  );
  expect(stray.isAtWork).toBe(false);
});
