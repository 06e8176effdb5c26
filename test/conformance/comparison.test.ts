/** Tests that the comparison detects differences: one wrong value in the answers of a server must make the case fail. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiServer, startApiServer } from '../../sandbox/api-server/api-server.ts';
import { testUnless } from '../support/left-out.ts';
import { ON_USUAL_RELEASE } from '../testenv/since.ts';
import { del, events, get, merge, post, put, type Step, watch } from './harness/case.ts';
import { normalise } from './harness/normalise.ts';
import { LEASES, lease } from './harness/objects.ts';
import { runCase } from './harness/run-case.ts';
import { type Answer, connect, type Stream, type Wire } from './harness/wire.ts';

const SAMPLE: readonly Step[] = [
  post(
    LEASES,
    { ...lease('one', { holderIdentity: 'me' }, { labels: { a: 'b' } }), odd: 1 },
    { as: 'made' },
  ),
  watch('w', `${LEASES}?watch=true&resourceVersion={made.metadata.resourceVersion}`),
  merge(`${LEASES}/one`, { spec: { holderIdentity: 'you' } }),
  put(`${LEASES}/one`, lease('one', {}, { resourceVersion: '{made.metadata.resourceVersion}' })),
  post(LEASES, lease('two', { leaseDurationSeconds: -1, leaseTransitions: -1 })),
  del(`${LEASES}/one`),
  post(LEASES, lease('one')),
  events('w', 3),
  get(LEASES),
];

type Lie = (text: string) => string;

/** Changes the answers of the wire as text, so that one replacement can make them wrong. */
function lying(wire: Wire, lie: Lie): Wire {
  return {
    ...wire,
    send: async (outgoing) => JSON.parse(lie(JSON.stringify(await wire.send(outgoing)))) as Answer,
    stream: async (path) => lyingStream(await wire.stream(path), lie),
  };
}

function lyingStream(stream: Stream, lie: Lie): Stream {
  return {
    get code() {
      return stream.code;
    },
    get ended() {
      return stream.ended;
    },
    get lines() {
      return JSON.parse(lie(JSON.stringify(stream.lines))) as unknown[];
    },
    close: () => stream.close(),
  };
}

const servers: ApiServer[] = [];

beforeAll(async () => {
  servers.push(await startApiServer(), await startApiServer());
});

afterAll(async () => {
  await Promise.all(servers.map(async (server) => await server.stop()));
});

/** Returns the transcripts of the case on two servers. The answers of the second server are changed by `lie`. */
async function compare(ns: string, lie: Lie): Promise<unknown[][]> {
  const [honest, liar] = servers.map(({ url }) => connect('embedded', url));
  if (!honest || !liar) throw new Error('two servers are needed');
  const results = [honest, lying(liar, lie)].map(async (wire) => {
    await wire.send({
      method: 'POST',
      path: '/api/v1/namespaces',
      body: JSON.stringify({ metadata: { name: ns } }),
    });
    const transcript = normalise(
      await runCase(SAMPLE, wire, { ns, id: ns, group: 'none.example.com' }),
    );
    wire.close();
    return transcript;
  });
  return await Promise.all(results);
}

test('two servers that say the same are found equal', async () => {
  const [one, other] = await compare('honest', (text) => text);
  expect(other).toEqual(one);
  expect(one).toHaveLength(8);
});

/** Returns a lie that replaces the match of the pattern with the result of `replacement`. */
const swapped =
  (pattern: RegExp, replacement: (match: string) => string): Lie =>
  (text) =>
    text.replace(pattern, replacement);

/** The comparison ignores messages on another release, whose API server has other words. */
const LIES_IN_WORDS: readonly [string, Lie][] = [
  ['another message', swapped(/object has been modified/, () => 'object was modified')],
  ['another message of one cause', swapped(/must be greater than 0/, () => 'must be positive')],
];

const LIES: readonly [string, Lie][] = [
  ['another code', swapped(/"code":201/, () => '"code":200')],
  ['another reason', swapped(/"reason":"Conflict"/, () => '"reason":"Invalid"')],
  [
    'a cause left out',
    swapped(/,\{"reason":"FieldValueInvalid"[^}]*transitions?[^}]*\}/i, () => ''),
  ],
  ['another value', swapped(/"holderIdentity":"you"/, () => '"holderIdentity":"me"')],
  ['a value of another type', swapped(/"holderIdentity":"you"/, () => '"holderIdentity":1')],
  ['a member more', swapped(/"kind":"Lease"/, () => '"kind":"Lease","more":true')],
  ['a label left out', swapped(/"labels":\{"a":"b"\}/, () => '"labels":{}')],
  ['no warning', swapped(/"warnings":\["[^\]]*"\]/, () => '"warnings":[]')],
  ['another content type', swapped(/application\/json/, () => 'text/plain')],
  ['an event of another type', swapped(/"type":"MODIFIED"/, () => '"type":"ADDED"')],
  ['an old time', swapped(/"creationTimestamp":"20/, () => '"creationTimestamp":"19')],
  ['no time', swapped(/"creationTimestamp":"[^"]*",?/, () => '')],
  [
    'a revision that does not grow',
    swapped(/"resourceVersion":"\d+"/, () => '"resourceVersion":"1"'),
  ],
  ['a uid that is none', swapped(/"uid":"[^"]*"/, () => '"uid":"none"')],
  ['an item left out', swapped(/"items":\[.*\]/, () => '"items":[]')],
];

async function isFound(name: string, lie: Lie): Promise<void> {
  let told = 0;
  const counting: Lie = (text) => {
    const result = lie(text);
    if (result !== text) told += 1;
    return result;
  };
  const [honest, liar] = await compare(name.replaceAll(' ', '-'), counting);
  expect(told).toBeGreaterThan(0);
  expect(liar).not.toEqual(honest);
}

test.each(LIES)('%s: found', isFound);
testUnless(
  ON_USUAL_RELEASE ? undefined : 'on another release, the comparison ignores messages',
).each(LIES_IN_WORDS)('%s: found', async (name, lie) => await isFound(name, lie));

test('the same uid for an object and its successor: found', async () => {
  const first: string[] = [];
  const [honest, liar] = await compare('reborn', (text) =>
    text.replaceAll(/"uid":"([^"]*)"/g, (_match, uid: string) => {
      first.push(uid);
      return `"uid":"${first[0]}"`;
    }),
  );
  expect(liar).not.toEqual(honest);
});
