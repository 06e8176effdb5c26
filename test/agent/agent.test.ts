/** Tests the agent as a process, with an API server, a supervised service and a download server. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findProcess } from '../../src/agent/service/processes.ts';
import { upgradePathsOf } from '../../src/agent/state/state-directory.ts';
import { SIGNAL_STATUSES } from '../../src/signal/names.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';
import { NEW, NEXT, OLD, Rig, type RigOptions } from './rig.ts';
import { Storm } from './storm.ts';

let cluster: MemoryCluster;
let nodes = 0;

beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

const startRig = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
  await Rig.start({
    name: `node${++nodes}`,
    admin: cluster.admin,
    kubeconfig: cluster.kubeconfig,
    ...options,
  });

const writesTo = ({ host }: Rig): number[] =>
  cluster.requests
    .filter(({ verb, name }) => verb === 'update' && name === host.name)
    .map(({ code }) => code);

async function expectUpdated(rig: Rig, version = NEW, file = '/new'): Promise<void> {
  await rig.end();
  expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
  expect(await rig.host.version()).toBe(version);
  expect(await rig.installed()).toBe(rig.server.sha256(file));
  expect(await rig.leftovers()).toEqual([]);
}

describe('an update', () => {
  test('an update makes eight writes for six statuses, cordon and uncordon, and changes nothing else', async () => {
    await using rig = await startRig();
    const before = await rig.object();
    rig.startAgent();
    await rig.announced();
    await rig.send('/new', NEW);
    await expectUpdated(rig);
    expect(rig.changes).toBe(8);
    expect(writesTo(rig)).toEqual(Array.from({ length: 8 }, () => 200));
    expect(rig.server.requests).toMatchObject([
      { node: rig.host.name, status: 200, complete: true },
    ]);
    expect(rig.host.starts).toBe(2);
    expect(await rig.installed('.previous')).toBe(rig.server.sha256('/old'));
    const after = await rig.object();
    expect(after).toMatchObject({
      ...before,
      metadata: { labels: before.metadata.labels, annotations: before.metadata.annotations },
    });
    expect(Object.keys(after)).toEqual(Object.keys(before));
    const report = await rig.report();
    expect(report).toMatchObject({ from: OLD });
    expect(Object.keys(report?.spent ?? {})).toEqual(SIGNAL_STATUSES.slice(0, -1));
  });

  test('the agent obeys an older signal, skips the version that runs, and installs it again only if forced', async () => {
    await using rig = await startRig();
    await rig.send('/new', NEW);
    rig.startAgent();
    await expectUpdated(rig);
    await rig.send('/next', NEXT);
    await expectUpdated(rig, NEXT, '/next');
    expect(await rig.installed('.previous')).toBe(rig.server.sha256('/new'));

    const { pid } = rig.host;
    const before = writesTo(rig).length;
    await rig.send('/next', NEXT);
    await rig.end();
    expect(rig.statuses).toEqual(['Completed']);
    expect(writesTo(rig).slice(before)).toEqual([200]);
    expect(rig.server.requests).toHaveLength(2);
    expect(rig.host.pid).toBe(pid);
    expect(await rig.report()).toMatchObject({ from: NEXT });

    await rig.send('/next', NEXT, { forceupdate: true });
    await expectUpdated(rig, NEXT, '/next');
    expect(rig.host.starts).toBe(4);
    expect(rig.server.requests).toHaveLength(3);
  });

  test('replaces another that had not come far', async () => {
    await using rig = await startRig({ bytes: 64_000, faults: [{ paceMs: 50 }] });
    rig.startAgent();
    await rig.send('/new', NEW);
    await rig.until(() => expect(rig.server.requests[0]?.bytesSent).toBeGreaterThan(0));
    await rig.send('/next', NEXT);
    await expectUpdated(rig, NEXT, '/next');
    expect(rig.server.requests).toMatchObject([
      { path: '/new', complete: false },
      { path: '/next', complete: true },
    ]);
    expect(rig.host.starts).toBe(2);
  });

  test('waits for a slow supervisor', async () => {
    await using rig = await startRig({ restartDelayMs: 2_000 });
    rig.startAgent();
    await rig.send('/new', NEW);
    await expectUpdated(rig);
    expect((await rig.report())?.spent?.['Restart']).toBeGreaterThan(1_900);
  });

  test('of a controller goes on though its own API server is away meanwhile', async () => {
    const listen = `127.0.0.2:${await freePort('127.0.0.2')}`;
    const kubeconfig = await cluster.kubeconfigFor(`http://${listen}`);
    const apiServer = { listen, upstream: new URL(cluster.url).host };
    await using rig = await startRig({
      role: 'controller',
      restartDelayMs: 1_000,
      kubeconfig,
      apiServer,
    });
    rig.startAgent();
    await rig.send('/new', NEW);
    await expectUpdated(rig);
  });

  test('an update succeeds although the download server fails for a short time', async () => {
    await using rig = await startRig({ faults: [{ status: 503 }, { resetAfterBytes: 1_000 }] });
    rig.startAgent();
    await rig.send('/new', NEW);
    await expectUpdated(rig);
    expect(rig.server.requests.filter(({ complete }) => complete)).toHaveLength(1);
  });

  test('is not disturbed by somebody who writes the object all the time', async () => {
    await using rig = await startRig({ bytes: 64_000, faults: [{ paceMs: 10 }] });
    rig.startAgent();
    await rig.send('/new', NEW);
    await using storm = new Storm(rig);
    await expectUpdated(rig);
    expect(storm.writes).toBeGreaterThan(5);
    expect(rig.server.requests).toMatchObject([{ complete: true }]);
    expect(rig.host.starts).toBe(2);
    const { annotations } = (await rig.object()).metadata;
    expect(annotations).toMatchObject({
      'example.com/theirs': 'kept',
      'example.com/storm': expect.stringMatching(/^\d+$/),
    });
  });
});

describe('a failure leaves the old version running', () => {
  const untouched = async (rig: Rig, pid: number | undefined): Promise<void> => {
    await rig.end();
    expect(rig.host.pid).toBe(pid);
    expect(await rig.installed()).toBe(rig.server.sha256('/old'));
    expect(await rig.leftovers()).toEqual([]);
  };

  test.each<[string, Partial<RigOptions>, '/new' | '/none', string, object, string[], RegExp]>([
    [
      'damaged bytes',
      { breakFor: ['damaged'], name: 'damaged' },
      '/new',
      NEW,
      {},
      ['Downloading', 'FailedDownload'],
      /^sha256 .*, wanted [0-9a-f]{64}$/,
    ],
    ['no file', {}, '/none', NEW, {}, ['Downloading', 'FailedDownload'], /answered 404/],
    [
      'a sha256 that is none',
      {},
      '/new',
      NEW,
      { sha256: 'abc' },
      ['FailedDownload'],
      /"abc" is not 64 hexadecimal/,
    ],
    [
      'too many bytes',
      { flags: ['--max-download-bytes', '100'] },
      '/new',
      NEW,
      {},
      ['Downloading', 'FailedDownload'],
      /bigger than 100 bytes/,
    ],
    [
      'a download that reports another version than the signal fails, and the old version keeps running',
      {},
      '/new',
      NEXT,
      {},
      ['Downloading', 'Failed'],
      /it reports version "v1.36.3\+k0s.2" instead of v1.36.4/,
    ],
    [
      'an airgapupdate on a controller',
      { role: 'controller' },
      '/new',
      NEW,
      { kind: 'airgapupdate' },
      ['FailedDownload'],
      /airgapupdate/,
    ],
  ])('%s', async (_name, options, file, version, more, statuses, reason) => {
    await using rig = await startRig(options);
    const { pid } = rig.host;
    rig.startAgent();
    await rig.send(file, version, more);
    await untouched(rig, pid);
    expect(rig.statuses).toEqual(statuses);
    expect((await rig.report())?.reason).toMatch(reason);
  });

  // While no process answers, the agent cannot know whether the agent of k0s would report the end. So it first reports
  // that it rolls back. On a busy machine, a process takes seconds to crash, but the agent must observe several crashes
  // in time.
  test.each([
    [
      'crashes',
      '10s',
      ['RollingBack'],
      /^crash loop: .* did not show v1.36.3\+k0s.2 within 10 s .*; started at least \d+ times in \d{2,} s$/,
    ],
    [
      'hangs',
      '3s',
      ['RollingBack'],
      /^the service did not show v1.36.3\+k0s.2 within 3 s of its restart$/,
    ],
    ['wrong-version', '3s', [], /runs v1.36.3\+k0s.2.wrong instead of v1.36.3\+k0s.2/],
  ] as const)(
    'the agent rolls back a k0s build that fails after the restart: %s',
    async (broken, timeout, first, reason) => {
      await using rig = await startRig({
        broken,
        flags: ['--restart-timeout', timeout],
        restartDelayMs: 100,
      });
      rig.startAgent();
      await rig.send('/new', NEW);
      await rig.end();
      expect(rig.statuses).toEqual([
        'Downloading',
        'Cordoning',
        'ApplyingUpdate',
        'Restart',
        ...first,
        'Failed',
      ]);
      expect(await rig.report()).toMatchObject({
        from: OLD,
        rolledBack: true,
        reason: expect.stringMatching(reason),
      });
      expect(await rig.host.version()).toBe(OLD);
      expect(await rig.installed()).toBe(rig.server.sha256('/old'));
      expect(await rig.leftovers()).toEqual([]);
      await rig.send('/next', NEXT);
      await expectUpdated(rig, NEXT, '/next');
    },
  );
});

describe('in the soak', () => {
  test('a build that ends after it answered once is rolled back', async () => {
    await using rig = await startRig({ broken: 'crashes-later', flags: ['--soak', '2s'] });
    rig.startAgent();
    await rig.send('/new', NEW);
    await rig.end();
    // The agent reports `RollingBack` only if the next process does not answer yet when the agent checks it.
    expect(rig.statuses.filter((status) => status !== 'RollingBack')).toEqual([
      'Downloading',
      'Cordoning',
      'ApplyingUpdate',
      'Restart',
      'Failed',
    ]);
    expect(await rig.report()).toMatchObject({
      rolledBack: true,
      reason: expect.stringMatching(/^crash loop: /),
    });
    expect(await rig.host.version()).toBe(OLD);
    expect(await rig.leftovers()).toEqual([]);
  });

  test('kill -9 of the agent: the next one watches the same process on', async () => {
    await using rig = await startRig({ flags: ['--soak', '1s'] });
    const first = rig.startAgent();
    await rig.send('/new', NEW);
    await rig.until(async () => expect(await rig.journal()).toContain('"soaking"'));
    await first.stop('SIGKILL');
    expect(rig.statuses.at(-1)).toBe('Restart');
    rig.startAgent();
    await expectUpdated(rig);
    expect(rig.host.starts).toBe(2);
  });
});

test('a roll-back goes on after kill -9 though no API server can be reached', async () => {
  await using rig = await startRig({
    broken: 'crashes',
    flags: ['--restart-timeout', '3s'],
    restartDelayMs: 100,
  });
  const first = rig.startAgent();
  await rig.send('/new', NEW);
  await rig.until(async () => expect(await rig.journal()).toContain('"restarted"'));
  await first.stop('SIGKILL');
  const cutOff = rig.startAgent('--kubeconfig', await cluster.kubeconfigFor('http://127.0.0.1:1'));
  await rig.until(async () => expect(await rig.host.version()).toBe(OLD));
  expect(await rig.installed()).toBe(rig.server.sha256('/old'));
  await cutOff.stop('SIGKILL');
  rig.startAgent();
  await rig.end();
  expect(rig.statuses.at(-1)).toBe('Failed');
  expect(await rig.report()).toMatchObject({ rolledBack: true });
});

describe('kill -9 of the agent', () => {
  test('at each status: the next one ends the work, with one download of each file', async () => {
    await using rig = await startRig();
    const files = [
      ['/new', NEW],
      ['/next', NEXT],
    ] as const;
    let agent = rig.startAgent();
    for (const [index, status] of SIGNAL_STATUSES.entries()) {
      const [file, version] = files[index % 2] ?? files[0];
      rig.onStatus = (seen) => {
        if (seen === status) process.kill(agent.pid, 'SIGKILL');
      };
      await rig.send(file, version);
      expect(await agent.exited, status).toBeNull();
      rig.onStatus = () => undefined;
      agent = rig.startAgent();
      await expectUpdated(rig, version, file);
      // From the third upgrade on, the agent uses the file that it kept from the previous upgrade.
      const downloads = rig.server.requests.filter(({ complete }) => complete);
      expect(downloads).toHaveLength(Math.min(index + 1, files.length));
      expect(rig.host.starts).toBe(index + 2);
    }
  });

  test('in the middle of the download: the next one continues', async () => {
    await using rig = await startRig({ bytes: 640_000, faults: [{ paceMs: 20 }] });
    const first = rig.startAgent();
    await rig.send('/new', NEW);
    const { part } = upgradePathsOf(rig.host.binary);
    await rig.until(async () => expect((await readFile(part)).length).toBeGreaterThan(100_000));
    await first.stop('SIGKILL');
    rig.startAgent();
    await expectUpdated(rig);
    const [broken, continued, ...more] = rig.server.requests;
    expect(more).toEqual([]);
    expect(broken?.complete).toBe(false);
    expect(continued).toMatchObject({ status: 206, complete: true });
    expect(continued?.from).toBeGreaterThan(100_000);
  });
});

describe('the process', () => {
  test('ends well on SIGTERM, in the middle of a download too', async () => {
    await using rig = await startRig({ bytes: 64_000, faults: [{ paceMs: 100 }] });
    const agent = rig.startAgent();
    await rig.send('/new', NEW);
    await rig.until(() => expect(rig.server.requests[0]?.bytesSent).toBeGreaterThan(0));
    expect(await agent.stop('SIGTERM')).toBe(0);
    rig.startAgent();
    await expectUpdated(rig);
  });

  test('is alone with its state directory', async () => {
    await using rig = await startRig();
    const first = rig.startAgent();
    await rig.until(() => expect(first.log.join()).toContain('agent started'));
    const second = rig.startAgent();
    expect(await second.exited).toBe(1);
    expect(second.log).toEqual([
      expect.stringMatching(new RegExp(`^REFIT_AGENT: another agent .PID ${first.pid}.`)),
    ]);
    expect(findProcess(first.pid)).toBeDefined();
    await first.stop('SIGKILL');
  });

  test.each([
    [['--object', 'pod'], 2, /^REFIT_USAGE: --object pod is none of/],
    [['--binary', '/nowhere/k0s'], 2, /^REFIT_FILE: there is no binary at \/nowhere\/k0s/],
    [['--kubeconfig', '/nowhere'], 2, /^REFIT_KUBECONFIG: .*\/nowhere/],
    [
      ['--state-dir', '/dev/null/state'],
      2,
      /^REFIT_FILE: cannot use the state directory \/dev\/null\/state/,
    ],
  ])('%j: one line and exit code %i', async (flags, code, line) => {
    await using rig = await startRig();
    const agent = rig.startAgent(...flags);
    expect(await agent.exited).toBe(code);
    expect(agent.log).toEqual([expect.stringMatching(line)]);
  });
});

async function freePort(address: string): Promise<number> {
  const server = createServer().listen(0, address);
  await once(server, 'listening');
  const bound = server.address();
  server.close();
  await once(server, 'close');
  return typeof bound === 'object' && bound !== null ? bound.port : 0;
}
