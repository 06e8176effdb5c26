/**
 * Tests the conformance of the OpenAPI documents: the parts that kubectl reads, for every kind that the sandbox serves.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type ApiServer, startApiServer } from '../../sandbox/api-server/api-server.ts';
import { closure, type OpenApiSchemas } from '../../sandbox/api-server/openapi/schemas.ts';
import { isRecord } from '../../src/util/json.ts';
import { testUnless } from '../support/left-out.ts';
import { WHY_ONLY_USUAL } from '../testenv/since.ts';
import { DEFINITIONS, widgetDefinition } from './harness/objects.ts';
import { connectReal } from './harness/suite.ts';
import { connect, type Wire } from './harness/wire.ts';

const GROUP = 'openapi.conformance.example.com';
const RECORDING = '../../sandbox/api-server/openapi/builtin-schemas.json';
const BUILTIN = [
  'api/v1',
  'apis/apiextensions.k8s.io/v1',
  'apis/batch/v1',
  'apis/coordination.k8s.io/v1',
  'apis/policy/v1',
];
/** Milliseconds within which a real server publishes a new definition. */
const PATIENCE = { timeout: 60_000, interval: 200 };
const OWN = `apis/${GROUP}/v1`;

const definition = JSON.stringify(
  widgetDefinition(
    {
      type: 'object',
      required: ['size'],
      properties: {
        size: { type: 'integer', minimum: 1, description: 'How large it is.' },
        note: { type: 'string', nullable: true, default: 'none' },
        port: { 'x-kubernetes-int-or-string': true },
        rest: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        each: {
          type: 'object',
          additionalProperties: { type: 'array', items: { type: 'string' } },
        },
      },
    },
    { status: { type: 'object', properties: { done: { type: 'boolean' } } } },
  ),
).replaceAll('$group', GROUP);

/** The API server in memory has the schemas of the built-in kinds of the usual release. */
const onUsualRelease = testUnless(WHY_ONLY_USUAL);

let sandbox: ApiServer;
let embedded: Wire;
let real: Wire;

beforeAll(async () => {
  sandbox = await startApiServer();
  embedded = connect('embedded', sandbox.url);
  real = await connectReal();
  for (const wire of [embedded, real])
    await wire.send({ method: 'POST', path: DEFINITIONS, body: definition });
  await vi.waitFor(async () => expect(await readDocument(real, OWN)).toBeDefined(), PATIENCE);
});

afterAll(async () => {
  await real.send({ method: 'DELETE', path: `${DEFINITIONS}/widgets.${GROUP}` });
  real.close();
  embedded.close();
  await sandbox.stop();
});

interface Item {
  readonly parameters: readonly { readonly name: string }[];
  readonly [verb: string]: unknown;
}

interface Document {
  readonly openapi: string;
  readonly info: unknown;
  readonly paths: Readonly<Record<string, Item>>;
  readonly components: { readonly schemas: OpenApiSchemas };
}

/** Reads the document from the path that the index names, as kubectl does. */
async function readDocument(wire: Wire, name: string): Promise<Document | undefined> {
  const { body } = await wire.send({ method: 'GET', path: '/openapi/v3' });
  // The real server sends its index as plain text.
  const index = (typeof body === 'string' ? JSON.parse(body) : body) as {
    paths: Record<string, { serverRelativeURL: string }>;
  };
  const { paths } = index;
  const path = paths[name]?.serverRelativeURL;
  if (path === undefined) return undefined;
  return (await wire.send({ method: 'GET', path })).body as Document;
}

async function both(name: string): Promise<[Document, Document]> {
  const [own, other] = await Promise.all([readDocument(embedded, name), readDocument(real, name)]);
  if (!own || !other) throw new Error(`no document ${name}`);
  return [own, other];
}

/**
 * Removes descriptions, because they may differ between servers. Keeps properties of schemas with the name
 * `description`.
 */
function withoutDescriptions(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDescriptions);
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(
    ([member, inner]) => member !== 'description' || typeof inner !== 'string',
  );
  return Object.fromEntries(kept.map(([member, inner]) => [member, withoutDescriptions(inner)]));
}

/**
 * In the real server, every group has its own options, with the same members. The sandbox has one type for all groups.
 */
const OPTIONS = 'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions';

function comparable({ components }: Document, name: string): unknown {
  const { 'x-kubernetes-group-version-kind': kinds, ...rest } = components.schemas[name] ?? {};
  return withoutDescriptions(
    name === OPTIONS || kinds === undefined
      ? rest
      : { ...rest, 'x-kubernetes-group-version-kind': kinds },
  );
}

/** Returns the parts of an operation that kubectl reads. */
function operationFacts(operation: unknown): unknown {
  const {
    parameters = [],
    requestBody,
    ...rest
  } = operation as {
    parameters?: { name: string }[];
    requestBody?: { content: object };
    'x-kubernetes-action': string;
    'x-kubernetes-group-version-kind': object;
  };
  return {
    action: rest['x-kubernetes-action'],
    kind: rest['x-kubernetes-group-version-kind'],
    parameters: parameters.map(({ name }) => name).toSorted(),
    patches: rest['x-kubernetes-action'] === 'patch' ? Object.keys(requestBody?.content ?? {}) : [],
  };
}

const CHANGES = ['post', 'put', 'patch'];

/** Returns the kind of each operation, and the options of the operations that change an object. */
function itemFacts(item: Item | undefined): unknown {
  const { parameters: _parameters, ...verbs } = item ?? { parameters: [] };
  return Object.fromEntries(
    Object.entries(verbs).map(([verb, operation]) => {
      const facts = operationFacts(operation) as { parameters: string[] };
      return [verb, CHANGES.includes(verb) ? facts : { ...facts, parameters: [] }];
    }),
  );
}

test.each([...BUILTIN, OWN])('the paths of %s', async (name) => {
  const [own, other] = await both(name);
  const paths = Object.keys(own.paths);
  expect(paths.length).toBeGreaterThan(0);
  for (const path of paths)
    expect([path, itemFacts(own.paths[path])]).toEqual([path, itemFacts(other.paths[path])]);
  expect([own.openapi, own.info]).toMatchObject([other.openapi, { title: 'Kubernetes' }]);
});

onUsualRelease.each([...BUILTIN, OWN])('the schemas of %s', async (name) => {
  const [own, other] = await both(name);
  const names = Object.keys(own.components.schemas);
  expect(names.length).toBeGreaterThan(5);
  for (const schema of names)
    expect([schema, comparable(own, schema)]).toEqual([schema, comparable(other, schema)]);
});

onUsualRelease('the recording of the built-in kinds', async () => {
  const schemas: Record<string, unknown> = {};
  for (const name of BUILTIN) {
    const [own, other] = await both(name);
    const kinds = Object.values(own.paths).flatMap(({ parameters: _parameters, ...verbs }) =>
      Object.values(verbs).map((verb) => kindOf(verb)),
    );
    const wanted = new Set([...kinds, ...kinds.map((kind) => `${kind}List`)]);
    const roots = Object.entries(other.components.schemas).filter(([, schema]) =>
      isNamed(schema, wanted),
    );
    const common = ['DeleteOptions', 'Patch', 'Status', 'ListMeta'].map(
      (each) => `io.k8s.apimachinery.pkg.apis.meta.v1.${each}`,
    );
    const found = closure(other.components.schemas, [...roots.map(([root]) => root), ...common]);
    for (const each of Object.keys(found)) schemas[each] = comparable(other, each);
  }
  const names = Object.keys(schemas).toSorted();
  const lines = names.map((name) => `${JSON.stringify(name)}: ${JSON.stringify(schemas[name])}`);
  await expect(`{\n${lines.join(',\n')}\n}\n`).toMatchFileSnapshot(RECORDING);
});

const kindOf = (operation: unknown): string =>
  (operation as { 'x-kubernetes-group-version-kind': { kind: string } })[
    'x-kubernetes-group-version-kind'
  ].kind;

function isNamed(schema: Readonly<Record<string, unknown>>, wanted: ReadonlySet<string>): boolean {
  const kinds = schema['x-kubernetes-group-version-kind'] as { kind: string }[] | undefined;
  return kinds?.length === 1 && kinds.some(({ kind }) => wanted.has(kind));
}

test('version 2 has the same kinds and references', async () => {
  const read = async (wire: Wire): Promise<Record<string, Record<string, unknown>>> => {
    const { body } = await wire.send({ method: 'GET', path: '/openapi/v2' });
    return body as Record<string, Record<string, unknown>>;
  };
  const [own, other] = await Promise.all([read(embedded), read(real)]);
  const text = JSON.stringify(own['definitions']);
  const dangling = [...text.matchAll(/"#\/definitions\/([^"]+)"/g)].filter(
    ([, name = '']) => own['definitions']?.[name] === undefined,
  );
  expect(dangling).toEqual([]);
  for (const path of Object.keys(own['paths'] ?? {})) expect(other['paths']).toHaveProperty([path]);
  const kind = 'com.example.conformance.openapi.v1.Widget';
  expect(withoutDescriptions(own['definitions']?.[kind])).toEqual(
    withoutDescriptions(other['definitions']?.[kind]),
  );
});

test('version 2 as protobuf, as kubectl asks for it', async () => {
  const accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
  const read = async (wire: Wire) =>
    await wire.send({ method: 'GET', path: '/openapi/v2', accept });
  const [own, other] = await Promise.all([read(embedded), read(real)]);
  expect([own.code, own.contentType]).toEqual([other.code, other.contentType]);
  for (const { body } of [own, other]) {
    // Field 1 is the version of the format, and field 2 begins with the title. A length follows each tag.
    expect(String(body).startsWith('\n\u00032.0\u0012')).toBe(true);
    expect(body).toContain('\n\nKubernetes\u0012');
  }
});
