// An updater for Cluster API. Use it with `refit capi-extension` and an UpdaterSet. It updates one field of
// KubeadmConfigs; this example writes the field to a file. The directory CERTIFICATES contains tls.crt and tls.key, and
// ca.crt for the clients that may call.
//   node cluster-api-updater.ts PORT CERTIFICATES FIELD STATE
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';

interface HookObject {
  readonly metadata: { readonly namespace: string; readonly name: string };
}
type Objects = Readonly<Record<string, HookObject>>;
type Answer = (body: { readonly current: Objects; readonly desired: Objects }) => object;

const [port, certificates = '.', field = 'files', state = '.'] = process.argv.slice(2);
const GROUP = 'hooks.runtime.cluster.x-k8s.io/v1alpha1';
const HOOKS = ['CanUpdateMachine', 'CanUpdateMachineSet', 'UpdateMachine'];

/** Returns the value as JSON; undefined if the object does not have it. */
function valueAt(object: unknown, path: readonly string[]): string | undefined {
  return JSON.stringify(
    path.reduce((at, name) => (at as Record<string, unknown> | undefined)?.[name], object),
  );
}

/** Returns a patch for the field of this updater, if the field changes. The updater must not claim any other field. */
const claim =
  (key: string, path: readonly string[]): Answer =>
  ({ current, desired }) => {
    const value = valueAt(desired[key], path);
    if (value === undefined || value === valueAt(current[key], path)) return {};
    const operations = `[{"op":"add","path":"/${path.join('/')}","value":${value}}]`;
    return {
      [`${key}Patch`]: {
        patchType: 'JSONPatch',
        patch: Buffer.from(operations).toString('base64'),
      },
    };
  };

/**
 * Cluster API calls this hook again until it returns 0 as `retryAfterSeconds`. The file shows whether the work is done,
 * so a restart of the updater does no harm.
 */
const update: Answer = ({ desired }) => {
  const { namespace, name } = desired['machine']?.metadata ?? { namespace: '', name: '' };
  const file = join(state, `${namespace}-${name}-${field}.json`);
  const wanted = valueAt(desired['bootstrapConfig'], ['spec', field]) ?? 'null';
  if (existsSync(file) && readFileSync(file, 'utf8') === wanted) return { retryAfterSeconds: 0 };
  writeFileSync(file, wanted);
  return { message: `changing ${field}`, retryAfterSeconds: 1 };
};

const handlers = HOOKS.map((hook) => ({
  name: hook.toLowerCase(),
  requestHook: { apiVersion: GROUP, hook },
}));
const ANSWERS = new Map<string | undefined, Answer>([
  ['discovery', () => ({ handlers })],
  ['canupdatemachine', claim('bootstrapConfig', ['spec', field])],
  ['canupdatemachineset', claim('bootstrapConfigTemplate', ['spec', 'template', 'spec', field])],
  ['updatemachine', update],
]);

const read = (name: string): Buffer => readFileSync(join(certificates, name));
const options = {
  cert: read('tls.crt'),
  key: read('tls.key'),
  ca: read('ca.crt'),
  requestCert: true,
};
const server = createServer({ ...options, rejectUnauthorized: true }, (request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.once('end', () => {
    const answer = ANSWERS.get(request.url?.split(`/${GROUP}/`)[1]?.split(/[/?]/)[0]);
    if (!answer) return response.writeHead(404).end();
    const body = answer(JSON.parse(Buffer.concat(parts).toString()) as Parameters<Answer>[0]);
    return response.end(JSON.stringify({ apiVersion: GROUP, status: 'Success', ...body }));
  });
});
server.listen(Number(port), '127.0.0.1');
