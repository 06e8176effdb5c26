/** Tests that the doubles of k0s behave as real k0s did when a person or a fault intervened. */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test as everyTest, expect } from 'vitest';
import { type Plan, plans } from '../../../src/api/autopilot/plan.ts';
import { leases, nodes } from '../../../src/kube/resources.ts';
import { isNotFound } from '../../../src/kube/status-error.ts';
import { NEW } from '../../support/doubles/payload-files.ts';
import { loadRecording } from '../../support/doubles/recorded-plan.ts';
import { runRecorded } from '../../support/doubles/recorded-run.ts';
import { installRemovedKind, REMOVED_KIND_FOUND } from '../../support/doubles/removed-kind.ts';
import { linesByObject } from '../../support/doubles/write-lines.ts';
import { testUnless } from '../../support/left-out.ts';
import { testOneIn } from '../../support/whole.ts';
import { WHY_NOT_AS_RECORDED } from '../since.ts';

const test = testOneIn(2);

const C3 = { controllers: ['c3'] };

test('03a: in k0s, one failed download ends the plan at once, although other workers have not started', async () => {
  const faults = [{ node: 'w1', status: 404 }];
  await using run = await runRecorded(
    '03a-download-404',
    { ...C3, workers: ['w1', 'w2', 'w3'], faults },
    (stage) => {
      // In the recording, w1 failed before the leader chose the next worker.
      stage.recorder.hold = async ({ resource, status }) => {
        if (resource !== 'plans/status' || !JSON.stringify(status).includes('SignalSent')) return;
        await stage.until(async () => expect(await stage.status('w1')).toBe('FailedDownload'));
      };
    },
  );
  await run.stage.untilPlan('ApplyFailed');
  await run.untilAsRecorded();
  expect(run.stage.downloads.requests).toMatchObject([{ node: 'w1', status: 404 }]);
});

test('04: a k0s plan stays blocked if a node gets another version than planned, even after an edit of the version', async () => {
  await using run = await runRecorded('04-wrong-version', { ...C3, workers: ['w3'] });
  const { stage } = run;
  await run.untilAsRecorded();
  const version = [{ op: 'replace', path: '/spec/commands/0/k0supdate/version', value: NEW }];
  await stage.client.patch(plans, 'autopilot', version, { type: 'json' });
  await run.untilAsRecorded();
  expect(await stage.host('w3').version()).toBe(NEW);
  expect([await stage.status('w3'), await stage.isCordoned('w3'), await stage.planState()]).toEqual(
    ['Restart', true, 'SchedulableWait'],
  );
});

test('05c: if a restart interrupts the download of a bundle, k0s never resumes the download', async () => {
  const cast = { ...C3, workers: ['w1', 'w2'], faults: [{ paceMs: 60_000, times: 4 }] };
  await using run = await runRecorded('05c-airgap-restart-mid-download', cast);
  const { stage } = run;
  await stage.until(async () => {
    expect([await stage.status('w1'), await stage.status('w2')]).toEqual([
      'Downloading',
      'Downloading',
    ]);
    expect(stage.downloads.requests).toHaveLength(2);
  });
  stage.double('w1').terminate();
  stage.double('w2').crash();
  await run.untilAsRecorded();
  expect(stage.downloads.requests).toHaveLength(2);
});

test('06 and 07a: in k0s, a plan with the id of an earlier completed plan completes at once', async () => {
  await using run = await runRecorded('06-two-k0supdates', { ...C3, workers: ['w1'] });
  const { stage } = run;
  await stage.untilPlan('Completed');
  await run.untilAsRecorded();
  await stage.deletePlan();
  const again = loadRecording('07a-reuse-id');
  const start = stage.recorder.writes.length;
  await stage.create(again.plan(stage.downloads));
  await stage.untilPlan('Completed');
  expect(linesByObject(stage.recorder.writes.slice(start))).toEqual(linesByObject(again.writes));
  expect(await stage.host('w1').version()).toBe(NEW);
});

test('07b: in k0s, a failed download makes the next plan with the same id fail', async () => {
  const name = '07b-reuse-id-after-failed-download';
  await using run = await runRecorded(name, { ...C3, workers: ['w1'], versions: { w1: NEW } });
  const { stage, recording } = run;
  await stage.untilPlan('ApplyFailed');
  await stage.deletePlan();
  const plan: Plan = JSON.parse(
    JSON.stringify(recording.plan(stage.downloads)).replace('/404/x', '/b/k0s-old'),
  );
  await stage.create(plan);
  await stage.untilPlan('ApplyFailed');
  await run.untilAsRecorded();
});

test('09: k0s uncordons a node after its update although an administrator had cordoned it', async () => {
  await using run = await runRecorded(
    '09-admin-cordoned',
    { ...C3, workers: ['w1'], versions: { w1: NEW } },
    async (stage) => {
      await stage.client.patch(
        nodes,
        'w1',
        { spec: { unschedulable: true } },
        { type: 'strategic' },
      );
      // Waits for the taint. Otherwise, the controller manager's write of the taint would conflict with the first
      // status.
      await stage.until(async () =>
        expect((await stage.client.get(nodes, 'w1')).spec?.taints).toHaveLength(1),
      );
    },
  );
  await run.stage.untilPlan('Completed');
  await run.untilAsRecorded();
  expect(await run.stage.isCordoned('w1')).toBe(false);
});

test('14d: in k0s, a write conflict after the new binary is in place blocks the node forever', async () => {
  await using run = await runRecorded(
    '14d-conflict-after-rename',
    { ...C3, workers: ['w1', 'w2'] },
    (stage) => {
      stage.holdStatus('w2', 'Restart', async () => {
        const annotations = { 'example.com/x': 'y' };
        await stage.client.patch(nodes, 'w2', { metadata: { annotations } }, { type: 'merge' });
      });
    },
  );
  const { stage } = run;
  await run.untilAsRecorded();
  await stage.until(async () => expect(await stage.status('w1')).toBe('Completed'));
  const wedged = stage.host('w2');
  expect(await readFile(wedged.binary)).toEqual(await readFile(join(stage.directory, 'k0s-new')));
  await expect(readFile(join(dirname(wedged.binary), 'k0s.tmp'))).rejects.toThrow('ENOENT');
  expect([await wedged.version(), wedged.starts, await stage.isCordoned('w2')]).toEqual([
    'v1.36.3+k0s.0',
    1,
    true,
  ]);
  stage.double('w2').terminate();
  await stage.until(async () => expect(await wedged.version()).toBe(NEW));
  // After a restart, the node runs the wanted build and still cannot continue.
  const said = stage.logs.get('w2')?.splice(0);
  expect(said?.join('')).toContain('k0s.tmp');
  await stage.until(() => expect(stage.logs.get('w2')?.join('')).toContain('k0s.tmp'));
  expect(await stage.status('w2')).toBe('ApplyingUpdate');
});

test('17: in k0s, a node finishes its update although its plan is deleted', async () => {
  await using run = await runRecorded(
    '17-delete-plan-midflight',
    { ...C3, workers: ['w1', 'w2'], versions: { w1: NEW, w2: NEW } },
    (stage) => stage.holdStatus('w1', 'Cordoning', async () => await stage.deletePlan()),
  );
  await run.stage.until(async () => expect(await run.stage.status('w1')).toBe('Completed'));
  expect(await run.stage.host('w1').version()).toBe('v1.36.3+k0s.0');
  expect(await run.stage.status('w2')).toBe('');
});

testUnless(WHY_NOT_AS_RECORDED)(
  '19: k0s waits forever for a node that is deleted while it downloads',
  async () => {
    await using run = await runRecorded(
      '19-node-deleted-while-sent',
      { ...C3, workers: ['w3'], versions: { w3: NEW } },
      (stage) =>
        stage.holdStatus('w3', 'Cordoning', async () => await stage.client.delete(nodes, 'w3')),
    );
    const { stage } = run;
    await stage.until(async () => {
      const lease = stage.client.get(leases, 'w3', { namespace: 'kube-node-lease' });
      await expect(lease).rejects.toSatisfy(isNotFound);
    });
    stage.double('w3').terminate();
    await run.untilAsRecorded();
    await stage.register('w3');
    expect(await stage.planState()).toBe('SchedulableWait');
  },
);

test('12a: if a k0s leader is killed, the next leader takes over when the Lease expires, and completes the plan', async () => {
  const cast = { controllers: ['c3', 'c1', 'c2'], reluctant: ['c1'], workers: ['w2', 'w3'] };
  const times = { leaseDuration: 2_000, renewDeadline: 1_500 };
  await using run = await runRecorded(
    '12a-leader-kill9',
    { ...cast, versions: { w2: NEW, w3: NEW }, times },
    (stage) =>
      stage.holdStatus('w3', 'Cordoning', async () => {
        stage.double('c3').crash();
        await stage.until(() => expect(stage.double('c3').isAtWork).toBe(false));
      }),
  );
  await run.stage.untilPlan('Completed');
  await run.untilAsRecorded();
});

test('15: a k0s leader does not find an API kind that is added after its first check, until it restarts', async () => {
  const cast = { ...C3, workers: ['w1'] };
  await using things = new AsyncDisposableStack();
  await using run = await runRecorded('15-removed-api', cast, async (stage) => {
    const ask = loadRecording('15-removed-api').plan(stage.downloads);
    const command = ask.spec.commands[0]?.k0supdate;
    if (command) command.targets = {};
    await stage.create(ask);
    await stage.untilPlan('Completed');
    await stage.deletePlan();
    things.use(await installRemovedKind());
  });
  const { stage, recording } = run;
  await run.untilAsRecorded();
  await stage.deletePlan();
  stage.double('c3').terminate();
  await stage.until(() => expect(stage.double('c3').isAtWork).toBe(false));
  await stage.create(recording.plan(stage.downloads));
  await stage.untilPlan('Warning');
  const { status } = await stage.client.get(plans, 'autopilot');
  expect(status?.commands).toEqual([{ id: 0, state: 'Warning', description: REMOVED_KIND_FOUND }]);
});

everyTest.each([
  ['18a-id-change-midflight', {}, [{ op: 'replace', path: '/spec/id', value: 'another' }]],
  [
    '18b-command-added-midflight',
    { versions: { w1: NEW } },
    [{ op: 'copy', from: '/spec/commands/0', path: '/spec/commands/-' }],
  ],
])('%s: the node comes to its end, the plan never does', async (name, cast, edit) => {
  await using run = await runRecorded(name, { ...C3, workers: ['w1'], ...cast }, (stage) =>
    stage.holdStatus('w1', 'Cordoning', async () => {
      await stage.client.patch(plans, 'autopilot', edit, { type: 'json' });
    }),
  );
  await run.stage.until(async () => expect(await run.stage.status('w1')).toBe('Completed'));
  await run.untilAsRecorded();
  expect(await run.stage.planState()).toBe('SchedulableWait');
});
