/** Proves what is requested from hosts, and what their answers mean in combination with the options of an upgrade. */
import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createAuthority, issueServer } from '../../../../tools/controlplane/certs.ts';
import { RefitError } from '../../../util/errors.ts';
import type { ShellResult } from '../../../util/run-program.ts';
import { warn } from '../../../versions/findings.ts';
import { etcdScript } from './etcd.ts';
import { attempt, type Host, type Shells, saidBy, type Upgrade } from './host.ts';
import { answersOf, etcdAnswers, etcdAnswersFrom, probeHost, readFacts } from './probe.ts';
import { factsScript, probeScript } from './scripts.ts';

const NOW = Date.parse('2026-11-21T00:00:00Z');
const DAY = 86_400_000;
const CP1: Host = { name: 'cp1', role: 'controlPlane' };
const CP2: Host = { name: 'cp2', role: 'controlPlane' };
const W1: Host = { name: 'w1', role: 'worker' };
const UPGRADE: Upgrade = {
  version: 'v1.36.3',
  binaries: { kubeadm: { path: '/a' }, kubelet: { path: '/b' } },
  kubeadm: {},
};

/** Simulates hosts that answer each script with a text, or fail. */
class Hosts implements Shells {
  readonly asked: [host: string, script: string, patienceMs: number | undefined][] = [];
  readonly #answer: (host: string, script: string) => string | Partial<ShellResult>;

  constructor(answer: (host: string, script: string) => string | Partial<ShellResult>) {
    this.#answer = answer;
  }

  async run({ name }: Host, script: string, patienceMs?: number): Promise<ShellResult> {
    this.asked.push([name, script, patienceMs]);
    const answer = this.#answer(name, script);
    const result = typeof answer === 'string' ? { stdout: answer } : answer;
    return await Promise.resolve({ code: 0, stdout: '', stderr: '', ...result });
  }
}

/**
 * Returns the lines about an authority whose key is on the host, and about two certificates that expire in ten days.
 * kubeadm renews only one of the two.
 */
function certificateLines(): string[] {
  const validity = { notBefore: NOW - 3000 * DAY, notAfter: NOW + 3000 * DAY };
  const ending = { notBefore: NOW - 355 * DAY, notAfter: NOW + 10 * DAY };
  const names = { dns: ['cp1'], addresses: [] };
  const [ours, others] = ['kubernetes', 'company'].map((commonName) => {
    const subject = { commonName };
    return { subject, ...createAuthority(subject, validity) };
  });
  if (!ours || !others) throw new Error('there are two authorities');
  const line = (certificate: string, file: string): string => {
    const der = new X509Certificate(certificate).raw.toString('base64');
    return `certificate=${der} ${(NOW - 355 * DAY) / 1000} ${file}`;
  };
  return [
    line(ours.certificate, '/pki/ca.crt'),
    'key=/pki/ca.key',
    line(issueServer(ours, names, ending).certificate, '/pki/apiserver.crt'),
    line(issueServer(others, names, ending).certificate, '/pki/other.crt'),
  ];
}

const CERTIFICATES = certificateLines();

describe('a probe', () => {
  const probe = async (kubeadm: Upgrade['kubeadm'], lines: readonly string[] = []) => {
    const text = [...CERTIFICATES, ...lines].join('\n');
    return await probeHost(new Hosts(() => text), { ...UPGRADE, kubeadm }, CP1, NOW);
  };
  const OURS = '/pki/apiserver.crt ends on 2026-12-01';
  const OTHER = '/pki/other.crt ends on 2026-12-01';
  const BY_KUBEADM = warn('certificate', `${OURS}; run kubeadm certs renew all`);
  const BY_HAND = warn(
    'certificate',
    `${OTHER}; the key of its CA is not on this host: renew the certificate on the host that has this key`,
  );

  test('asks the host once, within a minute', async () => {
    const hosts = new Hosts(() => 'kubelet=v1.36.2');
    const { host, kubelet, problems } = await probeHost(hosts, UPGRADE, CP1, NOW);
    expect([host, kubelet, problems]).toEqual([CP1, 'v1.36.2', []]);
    expect(hosts.asked).toEqual([['cp1', probeScript(UPGRADE, CP1, NOW), 60_000]]);
  });

  test('warns of certificates that the upgrade does not renew', async () => {
    const { problems, toRenew } = await probe({});
    expect([problems, toRenew]).toEqual([[BY_HAND], [OURS]]);
  });

  test.each<[string, Upgrade['kubeadm'], string[]]>([
    ['the options', { certificateRenewal: false }, []],
    ['a configuration', {}, ['leaves=apply:etcdUpgrade:', 'leaves=apply:certificateRenewal:']],
  ])('warns of all where %s switches the renewal off', async (_what, kubeadm, lines) => {
    const { problems, toRenew } = await probe(kubeadm, lines);
    expect([problems, toRenew]).toEqual([[BY_KUBEADM, BY_HAND], undefined]);
  });

  test.each<[string, Upgrade['kubeadm'], string[]]>([
    [
      'the options say more than the configuration',
      { certificateRenewal: true },
      ['leaves=apply:certificateRenewal:'],
    ],
    ['the configuration leaves out something else', {}, ['leaves=apply:etcdUpgrade:']],
  ])('renews where %s', async (_what, kubeadm, lines) => {
    const { problems, toRenew } = await probe(kubeadm, lines);
    expect([problems, toRenew]).toEqual([[BY_HAND], [OURS]]);
  });

  test('ignores the checks that the options and the host name', async () => {
    const ignoring = async (names: readonly string[], lines: readonly string[]) =>
      (await probe({ ignorePreflightErrors: names }, lines)).ground.ignores;
    expect(await ignoring(['Swap'], ['ignores=Mem'])).toEqual(['Swap', 'Mem']);
    expect(await ignoring([], ['ignores=Mem'])).toEqual(['Mem']);
    expect(await ignoring(['Swap'], [])).toEqual(['Swap']);
    const { ground } = await probe({});
    expect('ignores' in ground).toBe(false);
  });
});

describe('the facts of a host', () => {
  test('are read by a script of their own', async () => {
    const hosts = new Hosts(() => 'kubeadm=v1.36.3');
    expect((await readFacts(hosts, W1)).kubeadm).toBe('v1.36.3');
    expect(hosts.asked).toEqual([['w1', factsScript(W1), 60_000]]);
  });

  test.each<[string, Partial<ShellResult>, string]>([
    ['the last line of standard error', { stdout: 'a', stderr: 'b\nc\n' }, 'c'],
    ['the last line of its output', { stdout: 'a\nb\n' }, 'b'],
    ['no reason', {}, ''],
  ])('that cannot be read are an error with %s', async (_what, result, why) => {
    const hosts = new Hosts(() => ({ code: 7, ...result }));
    const failed = await readFacts(hosts, W1).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(RefitError);
    expect((failed as RefitError).message).toBe(
      `w1: cannot read facts from the host (exit code 7): ${why}`,
    );
  });

  test('leave out certificates that a worker does not use', async () => {
    const hosts = new Hosts(() => CERTIFICATES.join('\n'));
    const files = async (host: Host) =>
      (await readFacts(hosts, host)).certificates.map(({ file }) => file);
    expect(await files(W1)).toEqual(['/pki/ca.crt']);
    expect(await files(CP1)).toEqual(['/pki/ca.crt', '/pki/apiserver.crt', '/pki/other.crt']);
  });
});

describe('the etcd members', () => {
  const header = (id: string): string => `"header":{"cluster_id":"1","member_id":"${id}"}`;
  const members = [
    { ID: '10', name: 'cp1', clientURLs: ['https://10.0.0.1:2379'] },
    { ID: '11', name: 'cp2', clientURLs: ['https://10.0.0.2:2379', 'https://10.0.1.2:2379'] },
    { ID: '12', name: 'cp3', clientURLs: ['https://10.0.0.3:2379'] },
    { ID: '13', name: '' },
  ];
  const answerOf = (id: string): string =>
    [
      `{${header(id)},"count":"0"}`,
      `{${header(id)},"leader":"10"}`,
      `{${header(id)},"members":${JSON.stringify(members)}}`,
      `{${header(id)}}`,
    ]
      .map((line) => `etcd=${line}`)
      .join('\n');

  test('are asked on the control-plane hosts; a host without a member is left out', async () => {
    const hosts = new Hosts((name) => (name === 'cp1' ? answerOf('10') : ''));
    const found = await etcdAnswers(hosts, [CP1, W1, CP2]);
    expect([...found.keys()]).toEqual(['cp1']);
    expect(found.get('cp1')).toMatchObject({ id: '10', leader: '10' });
    expect(hosts.asked).toEqual([
      ['cp1', etcdScript(), 60_000],
      ['cp2', etcdScript(), 60_000],
    ]);
  });

  test('are asked from one host by their first URL, except those that never started', async () => {
    const hosts = new Hosts((_name, script) => {
      if (script === etcdScript()) return answerOf('10');
      return script === etcdScript('https://10.0.0.2:2379') ? answerOf('11') : '';
    });
    const found = await etcdAnswersFrom(hosts, CP1);
    expect(found.get('cp1')).toMatchObject({ id: '10' });
    expect(found.get('cp2')).toMatchObject({ id: '11' });
    expect([...found].slice(2)).toEqual([['cp3', 'no answer']]);
    expect(hosts.asked.map(([name, script, patience]) => [name, script, patience])).toEqual([
      ['cp1', etcdScript(), 60_000],
      ['cp1', etcdScript('https://10.0.0.2:2379'), 60_000],
      ['cp1', etcdScript('https://10.0.0.3:2379'), 60_000],
    ]);
  });

  test.each([
    ['does not answer', 'etcd=connection refused', 'connection refused'],
    ['cannot be asked', 'etcd=404 page not found', false],
  ])('cannot be found from a host whose own member %s', async (_what, text, answer) => {
    const hosts = new Hosts(() => text);
    expect([...(await etcdAnswersFrom(hosts, CP1))]).toEqual([['cp1', answer]]);
    expect(hosts.asked).toHaveLength(1);
  });

  test('are by the name of the host', () => {
    expect([
      ...answersOf([
        { host: CP1, etcd: false },
        { host: CP2, etcd: undefined },
      ]),
    ]).toEqual([['cp1', false]]);
  });
});

describe('what a host says', () => {
  test.each<[Partial<ShellResult>, string]>([
    [{ stdout: ' one \n\n  two\n', stderr: 'three' }, 'one; two'],
    [{ stdout: ' \n', stderr: 'three\n' }, 'three'],
    [{}, ''],
    [{ stdout: 'x'.repeat(2000) }, 'x'.repeat(1000)],
  ])('%j is told in one line', (result, said) => {
    expect(saidBy({ code: 1, stdout: '', stderr: '', ...result })).toBe(said);
  });

  test('is the reason where it cannot be reached', async () => {
    const gone = attempt(Promise.reject(new Error('no route')));
    expect(await gone).toEqual({ code: 1, stdout: 'no route', stderr: '' });
    const result = { code: 0, stdout: 'a', stderr: 'b' };
    expect(await attempt(Promise.resolve(result))).toBe(result);
  });
});
