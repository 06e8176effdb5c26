// An updater for Cluster API that runs a command of yours for each Machine. It covers one field of the spec of
// KubeadmConfigs or of infrastructure Machines. The command gets these environment variables:
//   MACHINE, NAMESPACE, PROVIDER_ID of the Machine
//   VALUE the desired value of the field: a string as it is, every other value as JSON
// Refit calls each updater of a set in each update. So the command also runs if only other fields change, and then it
// must change nothing. Exit code 0 means that the change is done. Exit code 75 means that the change is still in
// progress: the updater runs the command again. After any other exit code the update has failed, and the last line of
// standard error is the reason. The updater keeps no state, and may be killed at any time. So the command must check
// how far the change is, and continue there. The previous command may even still be running. Run only one replica of
// the updater, because two replicas would run two commands. CERTIFICATES is a directory with tls.crt, tls.key, and
// ca.crt, which signs the certificates of callers.
//   node command-updater.ts PORT CERTIFICATES bootstrapConfig|infrastructureMachine FIELD COMMAND
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';

interface HookObject {
  readonly metadata: { readonly namespace: string; readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}
type Objects = Readonly<Record<string, HookObject>>;
type Answer = (body: { readonly current: Objects; readonly desired: Objects }) => object;

interface Run {
  readonly value: string;
  /** Undefined until the command has ended. */
  result?: { readonly code: number; readonly reason: string };
}

const [port, certificates = '.', object = '', field = '', command = ''] = process.argv.slice(2);
const GROUP = 'hooks.runtime.cluster.x-k8s.io/v1alpha1';
const STILL_GOING = 75;
const FIELD = field.split('.');
/** The runs, by namespace and name of the Machine. */
const runs = new Map<string, Run>();

function valueAt(of: unknown, path: readonly string[]): unknown {
  return path.reduce((at, name) => (at as Record<string, unknown> | undefined)?.[name], of);
}

/** Answers with a patch that sets the field, if it changes. A merge patch also creates the objects around the field. */
const claim =
  (key: string, path: readonly string[]): Answer =>
  ({ current, desired }) => {
    const value = valueAt(desired[key], path);
    const isSame = JSON.stringify(value) === JSON.stringify(valueAt(current[key], path));
    if (value === undefined || isSame) return {};
    const patch = JSON.stringify(
      path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value),
    );
    return {
      [`${key}Patch`]: {
        patchType: 'JSONMergePatch',
        patch: Buffer.from(patch).toString('base64'),
      },
    };
  };

function start(machine: HookObject, value: string): Run {
  const { namespace, name } = machine.metadata;
  const providerId = machine.spec['providerID'];
  const env = {
    ...process.env,
    MACHINE: name,
    NAMESPACE: namespace,
    PROVIDER_ID: typeof providerId === 'string' ? providerId : '',
    VALUE: value,
  };
  const run: Run = { value };
  const child = spawn(command, { env, stdio: ['ignore', 'inherit', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (text: Buffer) => {
    errors = `${errors}${text.toString()}`.slice(-4096);
  });
  child.once('error', ({ message }) => {
    run.result = { code: 1, reason: message };
  });
  child.once('close', (code, signal) => {
    const reason = errors.trim().split('\n').at(-1) || `it ended with ${signal ?? String(code)}`;
    run.result ??= { code: code ?? 1, reason };
  });
  return run;
}

/**
 * Cluster API calls again until the answer asks for no retry, or is a failure. For each Machine, only one command runs
 * at a time.
 */
const update: Answer = ({ desired }) => {
  const { machine } = desired;
  if (machine === undefined)
    return { status: 'Failure', message: 'the request has no Machine', retryAfterSeconds: 0 };
  const wanted = valueAt(desired[object], ['spec', ...FIELD]);
  if (wanted === undefined) return { retryAfterSeconds: 0 };
  const value = typeof wanted === 'string' ? wanted : JSON.stringify(wanted);
  const key = `${machine.metadata.namespace}/${machine.metadata.name}`;
  const run = runs.get(key);
  if (run?.result !== undefined) {
    runs.delete(key);
    const { code, reason } = run.result;
    const isOfThisValue = run.value === value;
    if (isOfThisValue && code === 0) return { retryAfterSeconds: 0 };
    if (isOfThisValue && code !== STILL_GOING)
      return { status: 'Failure', message: `${command} failed: ${reason}`, retryAfterSeconds: 0 };
  }
  if (!runs.has(key)) runs.set(key, start(machine, value));
  return { message: `changing ${object}.spec.${field}`, retryAfterSeconds: 5 };
};

const handlers = ['CanUpdateMachine', 'CanUpdateMachineSet', 'UpdateMachine'].map((hook) => ({
  name: hook.toLowerCase(),
  requestHook: { apiVersion: GROUP, hook },
}));
const ANSWERS = new Map<string | undefined, Answer>([
  ['discovery', () => ({ handlers })],
  ['canupdatemachine', claim(object, ['spec', ...FIELD])],
  ['canupdatemachineset', claim(`${object}Template`, ['spec', 'template', 'spec', ...FIELD])],
  ['updatemachine', update],
]);

const read = (name: string): Buffer => readFileSync(join(certificates, name));
const server = createServer(
  {
    cert: read('tls.crt'),
    key: read('tls.key'),
    ca: read('ca.crt'),
    requestCert: true,
    rejectUnauthorized: true,
  },
  (request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.once('end', () => {
      const answer = ANSWERS.get(request.url?.split(`/${GROUP}/`)[1]?.split(/[/?]/)[0]);
      if (!answer) return response.writeHead(404).end();
      const body = answer(JSON.parse(Buffer.concat(parts).toString()) as Parameters<Answer>[0]);
      return response.end(JSON.stringify({ apiVersion: GROUP, status: 'Success', ...body }));
    });
  },
);
server.listen(Number(port));
