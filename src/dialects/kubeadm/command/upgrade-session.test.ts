/**
 * Proves that a run survives an outage of the API server while kubeadm replaces the API server, and does not survive
 * other outages.
 */
import { expect, onTestFinished, test } from 'vitest';
import { startApiServer } from '../../../../sandbox/api-server/api-server.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { configMaps } from '../../../kube/resources.ts';
import { TransportError } from '../../../kube/status-error.ts';
import { clientOver } from '../../../kube/transport/http-client.ts';
import { type Clock, sleep } from '../../../util/clock.ts';
import { type ManifestHost, parseManifest } from '../plan/manifest.ts';
import { newPlan } from '../plan/plan-object.ts';
import {
  type KubeadmFlags,
  type KubeadmSession,
  onAll,
  surveyCluster,
  throughOutages,
} from './upgrade-session.ts';

const hosts = '{name: cp1, role: controlPlane}, {name: cp2, role: controlPlane}';
const binaries = '{kubeadm: {path: /a}, kubelet: {path: /b}}';
const manifest = parseManifest(
  `{version: v1.36.3, hosts: [${hosts}], binaries: ${binaries}}`,
  'm.yaml',
);
const cut = new TransportError('socket hang up');

/** Returns a session whose hosts report the next entry of `busy` at each probe. The load balancer always answers. */
function sessionWith(busy: string[], clock: Clock = new FakeClock()): [KubeadmSession, string[]] {
  const said: string[] = [];
  const run = async () =>
    await Promise.resolve({ code: 0, stdout: `${busy.shift() ?? ''}\n`, stderr: '' });
  const raw = async () => await Promise.resolve({ status: 200, body: 'ok' });
  const output = { write: (line: string) => said.push(line) };
  const { signal: abort } = new AbortController();
  const session = { client: { raw }, manifest, shells: { run }, output, clock, abort };
  return [session as unknown as KubeadmSession, said];
}

function failing(times: number, error: Error): () => Promise<string> {
  let left = times;
  return async () => (left-- > 0 ? await Promise.reject(error) : await Promise.resolve('done'));
}

test('the work begins again while kubeadm of a killed run replaces an API server behind the load balancer', async () => {
  const clock = new FakeClock();
  const [session] = sessionWith(['', '', 'busy=step', '', '', 'busy=kubeadm'], clock);
  expect(await clock.runUntil(throughOutages(session, failing(2, cut)))).toBe('done');
});

test('where no host is at work, the error stands', async () => {
  const [session] = sessionWith([]);
  await expect(throughOutages(session, failing(1, cut))).rejects.toThrow('socket hang up');
});

test('another error stands, too, and no host is asked again', async () => {
  const [session] = sessionWith(['', '', 'busy=step', 'busy=step']);
  await expect(throughOutages(session, failing(1, new Error('refused')))).rejects.toThrow(
    'refused',
  );
});

test('a kubeadm that never ends, though it is none of the cluster, is waited for half an hour and then named', async () => {
  const clock = new FakeClock();
  const [session, said] = sessionWith(
    Array.from({ length: 20_000 }, () => 'busy=kubeadm, process 12'),
    clock,
  );
  const both = 'cp1 (kubeadm, process 12), cp2 (kubeadm, process 12)';
  // A request may take long until it times out, and this time counts as well.
  const work = async (): Promise<never> =>
    await sleep(clock, 2_000).then(async () => await Promise.reject(cut));
  const error = await clock.runUntil(throughOutages(session, work).catch((each: unknown) => each));
  expect(String(error)).toContain(
    'socket hang up; cp1 (kubeadm, process 12) is still at work: end that process if it hangs; cp2',
  );
  expect(clock.monotonic()).toBeGreaterThanOrEqual(1_800_000);
  expect(clock.monotonic()).toBeLessThan(1_900_000);
  expect(said).toEqual([`Waiting for the API server, which kubeadm replaces on ${both}.\n`]);
});

test('a step of Refit that never ends is named with its log, and nobody is told to end it', async () => {
  const clock = new FakeClock();
  const step = 'a step of Refit, log /run/refit.*';
  const busy = Array.from({ length: 20_000 }, () => `busy=${step}`);
  const [session] = sessionWith(busy, clock);
  const error = await clock.runUntil(
    throughOutages(session, failing(10_000, cut)).catch((each: unknown) => each),
  );
  expect(String(error)).toMatch(
    new RegExp(`cp1 \\(${RegExp.escape(step)}\\) is still at work; cp2`),
  );
  expect(String(error)).not.toContain('end that process');
});

test('a second outage does not count the first', async () => {
  const clock = new FakeClock();
  const busy = Array.from({ length: 20_000 }, () => 'busy=kubeadm, process 12');
  const [session, said] = sessionWith(busy, clock);
  const back = 1_200_000;
  const awayAgain = 1_800_000;
  const backAgain = 3_000_000;
  const work = async (): Promise<string> => {
    const now = clock.monotonic();
    if (now >= backAgain) return 'done';
    if (now >= back && now < awayAgain) await sleep(clock, awayAgain - now);
    throw cut;
  };
  expect(await clock.runUntil(throughOutages(session, work))).toBe('done');
  expect(said.length).toBe(2);
});

test.each<[string, object, number]>([
  ['32 hosts', {}, 32],
  [
    'no more logins into a bastion than its sshd takes without refusing some',
    { bastion: { address: 'b', port: 22 } },
    10,
  ],
])(
  'Refit works on all hosts, and limits how many at the same time: %s',
  async (_name, more, most) => {
    const many = Array.from(
      { length: 100 },
      (_, index): ManifestHost => ({ name: `w${index}`, role: 'worker', ...more }),
    );
    let running = 0;
    let greatest = 0;
    const names = await onAll(many, async ({ name }) => {
      greatest = Math.max(greatest, ++running);
      await Promise.resolve();
      running--;
      return name;
    });
    expect([greatest, names]).toEqual([most, many.map(({ name }) => name)]);
  },
);

test('a record that a person broke is refused in one sentence', async () => {
  const server = await startApiServer();
  onTestFinished(async () => await server.stop());
  const client = clientOver(server.caller);
  const plan = newPlan({} as never, '');
  await client.create(configMaps, {
    ...plan,
    data: { ...plan.data, rollout: '{"stages":[null]}' },
  });
  const [session] = sessionWith([]);
  const survey = surveyCluster({ ...session, client, flags: {} as KubeadmFlags }, []);
  await expect(survey).rejects.toThrow('data.rollout: phase: is missing');
  await expect(survey).rejects.toThrow(
    'stages[0]: is empty, expected an object; correct it, or delete the ConfigMap',
  );
});
