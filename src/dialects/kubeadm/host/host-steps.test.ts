/** Proves when a step on a host counts as done, is tried again, or is rolled back, and what is reported about it. */
import { describe, expect, test } from 'vitest';
import {
  type Answer,
  answers,
  member,
  node,
  rejecting,
  hostStepsRig as rig,
  VERSION,
} from '../../../../test/support/kubeadm/host-steps-rig.ts';
import type { Pod } from '../../../kube/resources.ts';
import type { EtcdAnswer } from './etcd.ts';
import type { Upgrade } from './host.ts';
import * as steps from './host-steps.ts';
import { kubeletBody } from './scripts.ts';

const UPGRADE: Upgrade = {
  version: VERSION,
  binaries: { kubeadm: { path: '/a' }, kubelet: { path: '/b' } },
  kubeadm: {},
};

const KUBELET = kubeletBody({});

describe('a step', () => {
  test('that ends well is done', async () => {
    const { on, outcome, scripts } = rig();
    expect(await outcome(steps.carryOut(on, 'kubelet', KUBELET))).toBe('');
    expect(scripts).toHaveLength(1);
    expect(scripts[0]).toMatch(/STEP='\\''kubelet'.*systemctl restart kubelet\nnote '\\''done'/s);
  });

  test.each<[string, Answer, string]>([
    ['fails', { code: 3, stdout: ' one \n two\n' }, 'exit code 3: one; two'],
    ['fails, with nothing on its output', { code: 3, stderr: 'three' }, 'exit code 3: three'],
    ['fails without a word', { code: 1 }, 'exit code 1: no output'],
    [
      'waits too long for another',
      { code: 75 },
      'exit code 75: another step still runs on this host',
    ],
  ])('that %s is not', async (_name, answer, expected) => {
    const { on, outcome } = rig(() => answer);
    expect(await outcome(steps.carryOut(on, 'kubelet', KUBELET))).toBe(
      `step kubelet failed with ${expected}`,
    );
  });

  test('whose host cannot be reached is asked again for minutes, and each reason is told once', async () => {
    const { on, outcome, scripts, clock, logged } = rig((_script, count) =>
      count < 100 ? new Error(count < 50 ? 'refused' : 'no route') : {},
    );
    expect(await outcome(steps.carryOut(on, 'kubelet', KUBELET))).toBe('');
    expect([scripts.length, clock.monotonic()]).toEqual([101, 300_000]);
    expect(logged.map((line) => JSON.parse(line) as unknown)).toEqual([
      expect.objectContaining({
        msg: 'lost the connection to the host, retrying',
        problem: 'refused',
      }),
      expect.objectContaining({ problem: 'no route' }),
    ]);
  });

  test('whose host stays away has failed', async () => {
    const { on, outcome, scripts } = rig(() => new Error('refused'));
    expect(await outcome(steps.carryOut(on, 'kubelet', KUBELET))).toBe('refused');
    expect(scripts).toHaveLength(101);
  });

  test('is not tried again once Refit stops', async () => {
    const { on, outcome, scripts, ended } = rig(() => {
      ended.abort(new Error('stopped'));
      return new Error('refused');
    });
    expect(await outcome(steps.carryOut(on, 'kubelet', KUBELET))).toBe('stopped');
    expect(scripts).toHaveLength(1);
  });

  test('that ended while Refit stops has not failed', async () => {
    const { on, outcome, ended } = rig(() => {
      ended.abort(new Error('stopped'));
      return { code: 1 };
    });
    expect(await outcome(steps.carryOut(on, 'kubelet', KUBELET))).toBe('stopped');
  });
});

describe('a step that needs the API server', () => {
  const failsOnce = (_script: string, count: number): Answer => ({ code: count === 0 ? 1 : 0 });

  test('is repeated once that is back', async () => {
    let away = 3;
    const { on, outcome, scripts } = rig(failsOnce, {
      node: async () => (away-- > 0 ? await rejecting() : node(VERSION)),
    });
    expect(await outcome(steps.carryOutOnceMore(on, 'kubeadm', KUBELET))).toBe('');
    expect(scripts).toHaveLength(2);
  });

  test('has failed where that is there', async () => {
    const { on, outcome, scripts } = rig(failsOnce);
    expect(await outcome(steps.carryOutOnceMore(on, 'kubeadm', KUBELET))).toContain('code 1');
    expect(scripts).toHaveLength(1);
  });

  test('has failed where that stays away', async () => {
    const { on, outcome, scripts } = rig(failsOnce, { node: rejecting });
    expect(await outcome(steps.carryOutOnceMore(on, 'kubeadm', KUBELET))).toBe(
      'the API server is away',
    );
    expect(scripts).toHaveLength(1);
  });
});

describe('before its etcd restarts', () => {
  test('a worker has none to ask', async () => {
    const { on, outcome } = rig(() => ({}), {
      host: { name: 'w1', role: 'worker' },
      members: rejecting,
    });
    expect(await outcome(steps.untilEtcdIsHealthy(on))).toBe('');
  });

  test('the others must be healthy, and are asked for two minutes', async () => {
    const { on, outcome, clock, scripts } = rig(() => ({}), {
      members: async () =>
        await Promise.resolve(answers(member('10'), member('11', { leader: '0' }))),
    });
    expect(await outcome(steps.untilEtcdIsHealthy(on))).toBe(
      'etcd: the member on cp2 sees no leader; start the other members, because etcd needs a majority of them',
    );
    expect(clock.monotonic()).toBe(120_000);
    expect(scripts).toEqual([]);
  });

  test.each<[string, EtcdAnswer | undefined]>([
    ['says that it cannot be reached', 'refused'],
    ['is not known', undefined],
  ])('its own member that %s is left to its kubeadm', async (_name, own) => {
    const { on, outcome, scripts } = rig(() => ({}), {
      members: async () => {
        const all = answers(member('10'));
        if (own === undefined) all.delete('cp1');
        else all.set('cp1', own);
        return await Promise.resolve(all);
      },
    });
    expect(await outcome(steps.untilEtcdIsHealthy(on))).toBe('');
    expect(scripts).toEqual([]);
  });

  const leading = {
    members: async () =>
      await Promise.resolve(
        answers(member('10', { leader: '10' }), member('11', { leader: '10' })),
      ),
  };
  test.each<[string, Answer, readonly string[]]>([
    ['gives that up', { stdout: '{"header":{}}' }, []],
    [
      'and cannot give that up restarts all the same',
      { code: 1 },
      ['etcd did not move its leader away'],
    ],
    [
      'and is refused that restarts all the same',
      { stdout: '{"error":"no"}' },
      ['etcd did not move its leader away'],
    ],
    [
      'and is cut off meanwhile restarts all the same',
      new Error('broken'),
      ['etcd did not move its leader away'],
    ],
  ])('a member that leads %s', async (_name, answer, expected) => {
    const { on, outcome, scripts, warnings } = rig(() => answer, leading);
    expect(await outcome(steps.untilEtcdIsHealthy(on))).toBe('');
    expect(scripts).toEqual([expect.stringContaining("TO='11'")]);
    expect(warnings()).toEqual(expected);
  });

  test('a member that does not lead has nothing to give up', async () => {
    const { on, outcome, scripts } = rig();
    expect(await outcome(steps.untilEtcdIsHealthy(on))).toBe('');
    expect(scripts).toEqual([]);
  });
});

describe('the check before the drain', () => {
  const FOUND = 'kubeadm=v1.36.3\nkernel=6.1\ncgroup=tmpfs\n';
  const worker = { host: { name: 'w1', role: 'worker' } } as const;
  const check = async (found: string, host: Partial<steps.HostStepsParts> = worker) => {
    const made = rig((_script, count) => (count === 0 ? { stdout: `${FOUND}${found}` } : {}), host);
    const error = await made.clock.runUntil(
      steps.prepare(made.on, UPGRADE).then(
        () => undefined,
        (problem: unknown) => problem,
      ),
    );
    return { ...made, error };
  };

  test('stages where nothing is wrong, also on cgroup v1, which the kubelet may allow', async () => {
    const { error, scripts, warnings } = await check('');
    expect([error, warnings()]).toEqual([undefined, []]);
    expect(scripts).toHaveLength(2);
    expect(scripts[1]).toContain('upgrade node phase preflight');
  });

  test('refuses with all that is wrong, and warns of the rest; it stages nothing', async () => {
    const { error, scripts, warnings } = await check(
      'hard=no room\nwarn=swap is on\nbusy=kubeadm, process 12\nbusy=a step of Refit\n',
    );
    expect(error).toMatchObject({
      code: 'REFIT_REFUSED',
      message:
        'no room; no setting allows this: correct that on the host, or in the manifest; kubeadm, process 12, runs on this host: wait for its end, or end it if it hangs',
    });
    expect(warnings()).toEqual(['swap is on']);
    expect(scripts).toHaveLength(1);
  });

  test('uses the options of the host, and asks for no plan of the upgrade', async () => {
    const kubeadm = { ignorePreflightErrors: ['Swap'] };
    const { scripts } = await check('', { host: { ...worker.host, kubeadm } });
    expect(scripts[1]).toContain("IGNORED='\\''Swap'\\''");
    expect(scripts[1]).toContain("PLAN='\\'''\\''");
  });

  test('names the step that fails', async () => {
    const { on, outcome } = rig((_script, count) => (count === 0 ? {} : { code: 1 }), worker);
    expect(await outcome(steps.prepare(on, UPGRADE))).toBe(
      'step stage failed with exit code 1: no output',
    );
  });

  test('waits for a step of Refit in the script itself', async () => {
    const { error } = await check('busy=a step of Refit\n');
    expect(error).toBeUndefined();
  });

  test('is that of a worker on a control-plane host, too, whose etcd is asked then', async () => {
    const { error, scripts } = await check('', {
      members: async () => await Promise.resolve(answers(member('10'), 'refused')),
    });
    expect(scripts[1]).toContain('upgrade node phase preflight');
    expect(error).toMatchObject({
      message: expect.stringContaining('the member on cp2') as string,
    });
  });

  test('refuses a kernel that the version does not start on', async () => {
    const { error } = await check('containerd=containerd github.com/x v1.6.0 abc\nhard=\n');
    expect(error).toBeUndefined();
    const other = rig(() => ({ stdout: FOUND.replace('6.1', '3.10') }), worker);
    const old = other.outcome(steps.prepare(other.on, { ...UPGRADE, version: 'v1.33.1' }));
    expect(await old).toMatch(/3\.10/);
  });
});

test('a host is verified once nothing is wrong any more', async () => {
  const { on, outcome, clock } = rig(
    (_script, count) => ({ stdout: `kubeadm=${count < 5 ? 'v1.36.2' : VERSION}` }),
    { host: { name: 'w1', role: 'worker' } },
  );
  expect(await outcome(steps.untilVerified(on))).toBe('');
  expect(clock.monotonic()).toBe(5_000);
});

test('a kubelet that crashes is told at each new crash, long before the time is over', async () => {
  const told: string[] = [];
  const { on, outcome, warnings, clock } = rig(
    (_script, count) => ({
      stdout: `kubelet=v1.36.3\nkubeletCrashes=${count < 3 ? '1 ' : '2 E1 command failed, token=abc'}`,
    }),
    {
      host: { name: 'w1', role: 'worker' },
      parts: ['kubelet'],
      node: async () =>
        await Promise.resolve(node(clock.monotonic() < 6_000 ? 'v1.36.2' : VERSION)),
      tell: (why) => void told.push(why),
    },
  );
  expect(await outcome(steps.untilVerified(on))).toBe('');
  const said = [
    'the new kubelet crashed once',
    'the new kubelet crashed 2 times; last line of its log: E1 command failed, token=***',
  ];
  expect(told).toEqual(said);
  expect(warnings()).toEqual(said);
});

test('a static pod that crashes again and again is told once, long before the time is over', async () => {
  const told: string[] = [];
  const pod = (component: string, host: string, reason?: string): Pod => ({
    metadata: { name: `${component}-${host}`, labels: { component } },
    spec: { nodeName: host, containers: [{ name: component, image: `r/${component}:${VERSION}` }] },
    status: {
      conditions: [{ type: 'Ready', status: reason === undefined ? 'True' : 'False' }],
      containerStatuses: [
        { name: component, state: reason === undefined ? {} : { waiting: { reason } } },
      ],
    },
  });
  const images = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
  const { on, outcome, warnings, clock } = rig(
    () => ({
      stdout: [
        `kubeadm=${VERSION}`,
        ...images.map((name) => `image.${name}=r/${name}:${VERSION}`),
      ].join('\n'),
    }),
    {
      pods: async () =>
        await Promise.resolve([
          pod('kube-scheduler', 'cp2', 'CrashLoopBackOff'),
          pod('kube-apiserver', 'cp1'),
          pod('kube-controller-manager', 'cp1', 'ContainerCreating'),
          pod(
            'kube-scheduler',
            'cp1',
            clock.monotonic() < 4_000 ? 'CrashLoopBackOff' : 'ContainerCreating',
          ),
        ]),
      tell: (why) => void told.push(why),
    },
  );
  expect(await outcome(steps.untilVerified(on))).toContain('kube-scheduler: its pod is not ready');
  const said = [
    'kube-scheduler crashes again and again; see kubectl -n kube-system logs kube-scheduler-cp1',
  ];
  expect(told).toEqual(said);
  expect(warnings()).toEqual(said);
});

test('several problems of a host are told in one line', () => {
  expect(() => steps.expectNone(['one', 'two'])).toThrow(new Error('one; two'));
});

test('it has failed after five minutes', async () => {
  const { on, outcome, clock } = rig(() => ({ stdout: 'kubeadm=v1.36.2' }), {
    host: { name: 'w1', role: 'worker' },
  });
  expect(await outcome(steps.untilVerified(on))).toBe(
    'kubeadm: v1.36.2; expected v1.36.3; upgrade the host again',
  );
  expect(clock.monotonic()).toBe(300_000);
});

describe('a roll-back', () => {
  const old = { node: async () => await Promise.resolve(node('v1.35.9')) };
  const rolledBack = async (answer: Answer, more: Partial<steps.HostStepsParts> = old) => {
    const made = rig(() => answer, more);
    return { ...made, said: await made.clock.runUntil(steps.rollBack(made.on)) };
  };

  test('puts the earlier kubelet back where the Node still reports another version', async () => {
    const { said, warnings } = await rolledBack({ stdout: 'v1.35.9' });
    expect(said).toBe(
      '; rolled back: v1.35.9 was put back and started; check that the Node is Ready',
    );
    expect(warnings()).toEqual(['the new kubelet does not work; rolling back']);
  });

  test('says nothing where nothing was replaced', async () => {
    expect((await rolledBack({})).said).toBe('');
  });

  test('that fails is told', async () => {
    expect((await rolledBack({ code: 2, stdout: 'no copy' })).said).toBe(
      '; the roll-back failed: no copy',
    );
  });

  test.each<[string, Partial<steps.HostStepsParts>]>([
    ['the new version', {}],
    ['no version', { node: async () => await Promise.resolve(node('')) }],
    ['nothing, as the API server is away', { node: rejecting }],
  ])('does not happen where the Node reports %s', async (_name, more) => {
    const { said, scripts } = await rolledBack({ stdout: 'v1.35.9' }, more);
    expect([said, scripts]).toEqual(['', []]);
  });

  test('that Refit itself ended has not failed', async () => {
    const { on, ended, outcome } = rig(() => {
      ended.abort(new Error('stopped'));
      return { code: 255 };
    }, old);
    expect(await outcome(steps.rollBack(on))).toBe('stopped');
  });
});
