/** Tests that the in-memory API server reads the bodies that kubectl v1.36 sends as protobuf. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ApiServer, startApiServer } from '../api-server.ts';

let server: ApiServer;

beforeEach(async () => {
  server = await startApiServer();
});

afterEach(async () => {
  await server.stop();
});

interface Answer {
  readonly code: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Sends bytes with the content type of protobuf, as kubectl does. */
async function send(path: string, body: Uint8Array<ArrayBuffer>, method = 'POST'): Promise<Answer> {
  const headers = {
    'content-type': 'application/vnd.kubernetes.protobuf',
    accept: 'application/vnd.kubernetes.protobuf,application/json',
  };
  const response = await fetch(`${server.url}${path}`, { method, headers, body });
  return { code: response.status, body: (await response.json()) as Answer['body'] };
}

/** A body that kubectl sent. */
const recorded = (text: string): Buffer<ArrayBuffer> => Buffer.from(text, 'base64');

const NAMESPACE = recorded(
  'azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhkKEQoBeBIAGgAiACoAMgA4AEIAEgAaAgoAGgAiAA==',
);
const SECRET = recorded('azhzAAoMCgJ2MRIGU2VjcmV0Eh0KEQoBcxIAGgAiACoAMgA4AEIAEgYKAWESAWIaABoAIgA=');
const CONFIG_MAP = recorded(
  'azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhsKEQoBYxIAGgAiACoAMgA4AEIAEgYKAWESAWIaACIA',
);
const JOB = recorded(
  'azhzAAoPCghiYXRjaC92MRIDSm9iEn4KEQoBahIAGgAiACoAMgA4AEIAEl8yXQoQCgASABoAIgAqADIAOABCABJJEiYKAWoSB2J1c3lib3gaBHRydWUqAEIAagByAIABAIgBAJABAKIBABoFTmV2ZXIyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBABoIIAAoADAAOgAaACIA',
);
const BUDGET = recorded(
  'azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSNgoRCgFwEgAaACIAKgAyADgAQgASFQoJCAEQABoDNTAlEggKBgoBYRIBYhoKCAAYACAAKAAwABoAIgA=',
);
const REVIEW = recorded(
  'azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSQAoQCgASABoAIgAqADIAOABCABIiCiAKB2RlZmF1bHQSBmNyZWF0ZRoAIgAqBXBsYW5zMgA6ABoICAASABoAIAAaACIA',
);
const DELETE_OPTIONS = recorded('azhzAAoTCgJ2MRINRGVsZXRlT3B0aW9ucxIAGgAiAA==');

const IN_DEFAULT = '/api/v1/namespaces/default';

test.each<[string, string, Buffer<ArrayBuffer>, object]>([
  ['kubectl create namespace', '/api/v1/namespaces', NAMESPACE, { metadata: { name: 'x' } }],
  [
    'kubectl create secret',
    `${IN_DEFAULT}/secrets`,
    SECRET,
    { data: { a: 'Yg==' }, type: 'Opaque' },
  ],
  ['kubectl create configmap', `${IN_DEFAULT}/configmaps`, CONFIG_MAP, { data: { a: 'b' } }],
  [
    'kubectl create poddisruptionbudget',
    '/apis/policy/v1/namespaces/default/poddisruptionbudgets',
    BUDGET,
    { spec: { minAvailable: '50%', selector: { matchLabels: { a: 'b' } } } },
  ],
  [
    'kubectl auth can-i',
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    REVIEW,
    {
      spec: { resourceAttributes: { namespace: 'default', verb: 'create', resource: 'plans' } },
      status: { allowed: true },
    },
  ],
])('the server reads the object of %s from protobuf', async (_command, path, body, expected) => {
  expect(await send(path, body)).toMatchObject({ code: 201, body: expected });
});

test('a Job from protobuf has the same template as the Job from JSON, without empty texts', async () => {
  const { body } = await send('/apis/batch/v1/namespaces/default/jobs', JOB);
  const { template } = body['spec'] as { template: { spec: { containers: object[] } } };
  expect(template.spec.containers).toEqual([
    expect.objectContaining({ name: 'j', image: 'busybox', command: ['true'] }),
  ]);
  expect(JSON.stringify(template.spec)).not.toContain('""');
});

test('a deletion with options in protobuf deletes the object', async () => {
  await send(`${IN_DEFAULT}/secrets`, SECRET);
  expect(await send(`${IN_DEFAULT}/secrets/s`, DELETE_OPTIONS, 'DELETE')).toMatchObject({
    code: 200,
    body: { status: 'Success' },
  });
});

test('a body that ends within a field is refused with 400, and creates nothing', async () => {
  expect(await send('/api/v1/namespaces', NAMESPACE.subarray(0, 30))).toMatchObject({
    code: 400,
    body: { message: expect.stringContaining('field 2 ends after the message') as string },
  });
  expect(server.objects('', 'namespaces').map(({ metadata }) => metadata.name)).not.toContain('x');
});

test('a body that is no protobuf of Kubernetes is refused with 400', async () => {
  expect(await send('/api/v1/namespaces', Buffer.from('{}'))).toMatchObject({ code: 400 });
});

test('a kind that has no protobuf is refused with 415, which names JSON and YAML alone', async () => {
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const body = Buffer.concat([Buffer.from('k8s\0\n\u0006\n\u0001a\u0012\u0001b')]);
  const { code, body: status } = await send(definitions, body);
  expect([code, status['message']]).toEqual([
    415,
    expect.stringMatching(/include: application\/json, application\/yaml$/),
  ]);
});
