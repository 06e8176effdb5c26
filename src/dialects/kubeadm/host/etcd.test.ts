/** Proves how the answers of etcd members are assessed. The recorded answers come from etcd 3.6. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  type EtcdAnswer,
  type EtcdMember,
  etcdAnswer,
  etcdProblems,
  nextLeader,
  snapshotScript,
  whyNoMember,
} from './etcd.ts';
import { wholeScript } from './filled-script.ts';

const HEADER = '"header":{"cluster_id":"1","member_id":"10","revision":"5","raft_term":"2"}';
const LINES = [
  `{${HEADER},"count":"0"}`,
  `{${HEADER},"version":"3.6.8","dbSize":"20480","leader":"10","raftIndex":"8","raftTerm":"2"}`,
  `{${HEADER},"members":[{"ID":"10","name":"cp1"},{"ID":"11","name":"cp2"},{"ID":"12","name":"cp3"}]}`,
  `{${HEADER},"alarms":[]}`,
];

function member(id: string, more: Partial<EtcdMember> = {}): EtcdAnswer {
  const members = ['10', '11', '12'].map((ID) => ({ ID, name: `etcd-${ID}`, isLearner: false }));
  return { cluster: '1', id, leader: '10', members, alarms: [], ...more };
}

type Answers = ReadonlyMap<string, EtcdAnswer>;
const of = (...answers: readonly EtcdAnswer[]): Answers =>
  new Map(answers.map((answer, index) => [`cp${index + 1}`, answer]));
const trio = (more: Partial<EtcdMember>): Answers =>
  of(member('10', more), member('11', more), member('12', more));
const said = (answers: Answers): string[] =>
  etcdProblems(answers).map(({ found, cure }) => `${found}; ${cure}`);

describe('an answer', () => {
  const whole = (more: string, alarms = '[]'): EtcdAnswer | undefined =>
    etcdAnswer([
      ...LINES.slice(0, 2),
      `{${HEADER},"members":[{"ID":"10","name":"cp1"},${more}]}`,
      `{${HEADER},"alarms":${alarms}}`,
    ]);

  test.each<[string, string, Partial<EtcdMember['members'][number]>]>([
    ['a learner', '"name":"cp2","isLearner":true', { name: 'cp2', isLearner: true }],
    ['one that has a vote', '"name":"cp2","isLearner":false', { isLearner: false }],
    ['one that says nothing of that', '"name":"cp2"', { isLearner: false, urls: [] }],
    ['one that says it in another way', '"isLearner":"true"', { isLearner: false }],
    ['one that never started', '"isLearner":true', { name: '', isLearner: true }],
    [
      'one with addresses, of which only those of members count',
      '"clientURLs":["https://10.0.0.2:2379","http://10.0.0.2:2379","https://h/$(x)",7]',
      { urls: ['https://10.0.0.2:2379'] },
    ],
    ['one with an odd address', '"clientURLs":"https://10.0.0.2:2379"', { urls: [] }],
  ])('that knows %s', (_name, fields, expected) => {
    const answer = whole(`{"ID":"11",${fields}}`);
    expect(answer).toMatchObject({ members: [{ ID: '10' }, { ID: '11', ...expected }] });
  });

  test('may hold what is no member and no alarm', () => {
    const alarms = `["x",{"memberID":"10","alarm":"NOSPACE"},{"alarm":"${'A'.repeat(40)}"}]`;
    expect(whole('7', alarms)).toMatchObject({
      members: [{ ID: '10' }],
      alarms: ['NOSPACE', 'A'.repeat(30)],
    });
  });

  test('of a member that sees no leader has none', () => {
    const silent = LINES.map((line) => line.replace('"leader":"10",', ''));
    expect(etcdAnswer(silent)).toMatchObject({ leader: '0' });
  });

  test.each<[string, string]>([
    ['a word before the digits', '"x10"'],
    ['a word after the digits', '"10x"'],
    ['more digits than an id has', `"${'1'.repeat(21)}"`],
    ['a number, which may have lost digits', '10'],
    ['nothing', '""'],
  ])('with %s for an id cannot be read', (_name, id) => {
    const lines = LINES.map((line) => line.replaceAll('"member_id":"10"', `"member_id":${id}`));
    expect(etcdAnswer(lines)).toBe('its answer cannot be read');
  });

  test('with a member whose id is none cannot be read', () => {
    expect(whole('{"ID":"11"},{"ID":"$(x)"}')).toBe('its answer cannot be read');
  });

  test('of a gateway that is off for one question only is none of a member that cannot be asked', () => {
    const line = '404 page not found';
    expect(etcdAnswer([line, line])).toBe(false);
    expect(etcdAnswer([...LINES.slice(0, 3), line])).not.toBe(false);
    expect(etcdAnswer([line, ...LINES.slice(1)])).toBe(line);
  });

  test('that is long is cut, and an empty one is none', () => {
    expect(etcdAnswer(['x'.repeat(300), ...LINES.slice(1)])).toBe('x'.repeat(200));
    expect(etcdAnswer(['', ...LINES.slice(1)])).toBe('no answer');
    expect(etcdAnswer(['curl: {"header"', ...LINES.slice(1)])).toBe('curl: {"header"');
  });

  test('of a healthy member', () => {
    expect(etcdAnswer(LINES)).toMatchObject({ cluster: '1', id: '10', leader: '10', alarms: [] });
  });

  test.each<[string, readonly string[], string]>([
    [
      'curl cannot connect',
      ["curl: (7) couldn't connect", ...LINES.slice(1)],
      "curl: (7) couldn't connect",
    ],
    [
      'a read that no leader answers',
      ['{"error":"etcdserver: request timed out","code":14}', ...LINES.slice(1)],
      '{"error":"etcdserver: request timed out","code":14}',
    ],
    ['too few lines', LINES.slice(1), 'its answer cannot be read'],
    [
      'ids that are no numbers',
      LINES.map((line) => line.replaceAll('10', '$(x)')),
      'its answer cannot be read',
    ],
  ])('%s', (_name, lines, wanted) => {
    expect(etcdAnswer(lines)).toBe(wanted);
  });

  test('of a host without a member, and of a member with its gateway off', () => {
    expect(etcdAnswer([])).toBeUndefined();
    expect(etcdAnswer(LINES.map(() => '404 page not found'))).toBe(false);
  });
});

test.each<[string, Answers, readonly string[]]>([
  ['nothing', trio({}), []],
  ['nothing of an external etcd', of(), []],
  [
    'Refit reports an etcd member that does not answer',
    of(member('10'), 'timeout'),
    [
      'the member on cp2 does not answer (timeout); see kubectl -n kube-system logs etcd-cp2; if the host is gone, replace it as the guide describes',
    ],
  ],
  [
    'a member on a machine of nobody',
    of(member('10'), member('11')),
    ['member etcd-12 is on no host of the manifest; add its host, or run etcdctl member remove c'],
  ],
  ['nothing of a member that cannot be asked', of(member('10'), member('11'), false), []],
  [
    'a learner, and one that never started',
    trio({
      members: [
        { ID: '10', name: 'a', isLearner: false },
        { ID: '11', name: 'b', isLearner: true },
        { ID: '12', name: '', isLearner: false },
      ],
    }),
    [
      'member b is a learner; wait until it is promoted, or run etcdctl member remove b',
      'member c was added, but never started; start it, or run etcdctl member remove c',
    ],
  ],
  [
    'an alarm, once',
    trio({ alarms: ['NOSPACE'] }),
    ['alarm NOSPACE; remove its cause, then run etcdctl alarm disarm'],
  ],
  [
    'no leader',
    of(member('10'), member('11', { leader: '0' }), member('12')),
    [
      'the member on cp2 sees no leader; start the other members, because etcd needs a majority of them',
    ],
  ],
  [
    'another cluster',
    of(member('10'), member('11'), member('12', { cluster: '2' })),
    ['cp3 and cp1 have different clusters; join one of them again'],
  ],
])('%s', (_name, answers, wanted) => {
  expect(said(answers)).toEqual(wanted);
});

test.each<[string, EtcdAnswer | undefined, string | undefined]>([
  ['of the leader', member('10'), '11'],
  ['of a follower', member('11'), undefined],
  ['of a member that does not answer', 'no', undefined],
  ['of no member', undefined, undefined],
])('who leads instead %s', (_name, own, wanted) => {
  expect(nextLeader(own, ['down', member('10'), member('11')])).toBe(wanted);
});

test('the only member keeps its leadership', () => {
  expect(nextLeader(member('10'), [member('10')])).toBeUndefined();
});

/** Returns the root directory of a host whose etcd has this URL. No process listens at the URL. */
function hostWith(url: string): string {
  const root = mkdtempSync(join(tmpdir(), 'refit-etcd-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const manifests = join(root, 'etc/kubernetes/manifests');
  mkdirSync(manifests, { recursive: true });
  writeFileSync(join(manifests, 'etcd.yaml'), `    - --listen-client-urls=${url}\n`);
  return root;
}

test('a snapshot that etcd does not give: the script says why, and removes what a run that was cut off left', () => {
  const root = hostWith('https://127.0.0.1:1');
  const snapshots = join(root, 'var/lib/refit/snapshots');
  mkdirSync(snapshots, { recursive: true });
  for (const name of ['etcd-before-v1.36.2-1.db', 'etcd-before-v1.36.2-2.db.new'])
    writeFileSync(join(snapshots, name), 'x');
  const env = { ...process.env, REFIT_ROOT: root };
  const { status, stdout } = spawnSync('sh', ['-s'], {
    input: snapshotScript('v1.36.3', 2),
    env,
    encoding: 'utf8',
  });
  expect([status, stdout]).toEqual([
    1,
    expect.stringMatching(/^etcd gave no snapshot: curl: \(\d+\) /),
  ]);
  expect(readdirSync(snapshots)).toEqual(['etcd-before-v1.36.2-1.db']);
});

test('a new snapshot of etcd stays, even if older ones have later times because the clock of the host was wrong', () => {
  const root = hostWith('https://127.0.0.1:1');
  const snapshots = join(root, 'var/lib/refit/snapshots');
  mkdirSync(snapshots, { recursive: true });
  const later = new Date(Date.now() + 86_400_000);
  for (const name of ['etcd-before-v1.36.1-1.db', 'etcd-before-v1.36.2-2.db']) {
    writeFileSync(join(snapshots, name), 'x');
    utimesSync(join(snapshots, name), later, later);
  }
  const body = Buffer.alloc(100, 'a');
  const blob = Buffer.concat([body, createHash('sha256').update(body).digest()]).toString('base64');
  for (const [name, text] of [
    ['curl', `echo '{"result":{"blob":"${blob}"}}'`],
    ['etcdutl', 'exit 0'],
  ] as const)
    writeFileSync(join(root, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const env = { ...process.env, REFIT_ROOT: root, PATH: `${root}:${process.env['PATH']}` };
  const input = snapshotScript('v1.36.3', 2);
  const { status, stdout } = spawnSync('sh', ['-s'], { input, env, encoding: 'utf8' });
  expect([status, stdout]).toEqual([
    0,
    expect.stringMatching(/etcd-before-v1\.36\.3-\w+\.db with SHA-256 [0-9a-f]{64}\n$/),
  ]);
  expect(readdirSync(snapshots)).toEqual([
    expect.stringMatching(/^etcd-before-v1\.36\.[12]-/),
    expect.stringMatching(/^etcd-before-v1\.36\.3-/),
  ]);
});

test.each([
  ['0.0.0.0', '127.0.0.1'],
  ['[::]', '[::1]'],
  ['[fd00::1]', '[fd00::1]'],
])('etcd that listens on %s is asked at %s, which its certificate has', (address, asked) => {
  const env = { ...process.env, REFIT_ROOT: hostWith(`https://${address}:1`) };
  const input = `${wholeScript('parts/etcd.sh')}echo "$URL"`;
  expect(spawnSync('sh', ['-s'], { input, env, encoding: 'utf8' }).stdout).toBe(
    `https://${asked}:1\n`,
  );
});

test.each<[string, readonly (readonly [string, EtcdAnswer])[], string]>([
  [
    'etcd is external if no host has a member',
    [],
    'etcd is external, because no host of the control plane runs a member',
  ],
  [
    'a member that cannot be asked is not called external',
    [
      ['cp1', false],
      ['cp2', false],
    ],
    'the member of etcd on cp1, cp2 cannot be asked: curl or the client certificate for its health is missing there, or its HTTP gateway is off',
  ],
  [
    'a member that does not answer is named with its words',
    [['cp1', 'connection refused']],
    'the member of etcd on cp1 does not answer: connection refused',
  ],
])('a missing snapshot of etcd has its own cause: %s', (_name, answers, why) => {
  expect(whyNoMember(new Map(answers))).toBe(why);
});
