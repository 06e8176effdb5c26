/** Tests that the recorded protobuf messages of the built-in kinds are the ones that Kubernetes declares. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { builtinSchemas } from '../../sandbox/api-server/openapi/schemas.ts';
import { ROOTS } from '../../sandbox/api-server/protobuf/messages.ts';
import { cacheDirectory } from '../../tools/controlplane/build.ts';
import { run } from '../../tools/controlplane/run.ts';
import { findToolchain } from '../../tools/controlplane/toolchain.ts';

const RECORDING = '../../sandbox/api-server/protobuf/messages.json';
/** The files in which the messages of the roots, and all messages to which they refer, are declared. */
const DECLARED: Readonly<Record<string, readonly string[]>> = {
  'k8s.io/api': ['authorization/v1', 'core/v1', 'batch/v1', 'coordination/v1', 'policy/v1'],
  'k8s.io/apimachinery': ['pkg/apis/meta/v1', 'pkg/api/resource', 'pkg/util/intstr'],
};

type Messages = Record<string, Record<string, string>>;

/** Returns the folder of a Go module from which kubectl is built. */
async function folderOf(module: string): Promise<string> {
  const cache = cacheDirectory(process.env);
  const { go, environment } = await findToolchain({ cache, run, log: () => undefined });
  const cwd = join(import.meta.dirname, '../../tools/kube');
  const { ok, stdout, stderr } = await run(
    go,
    ['list', '-mod=mod', '-m', '-f', '{{.Dir}}', module],
    { cwd, environment },
  );
  expect({ ok, stderr }).toEqual({ ok: true, stderr: '' });
  return stdout.trim();
}

const FIELD = /^\s+(?:map<string, ([\w.]+)>|(repeated|optional) ([\w.]+)) (\w+) = (\d+);/;

/** Adds the messages of one file. A field is written as its name in JSON and its type. */
function readDeclarations(text: string, messages: Messages): void {
  const [, packageName = ''] = /^package k8s\.io\.([\w.]+);/m.exec(text) ?? [];
  const full = (type: string): string => {
    if (type.startsWith('.k8s.io.')) return type.slice('.k8s.io.'.length);
    return /^[a-z]/.test(type) ? type : `${packageName}.${type}`;
  };
  for (const [, name = '', body = ''] of text.matchAll(/^message (\w+) \{\n(.*?)^\}/gms)) {
    const { properties } = builtinSchemas()[`io.k8s.${packageName}.${name}`] ?? {};
    const fields: Record<string, string> = {};
    for (const line of body.split('\n')) {
      const [, value, many, type = '', field = '', number] = FIELD.exec(line) ?? [];
      if (number === undefined) continue;
      const single = many === 'repeated' ? '[]' : '';
      const container = value === undefined ? single : '{}';
      // A member that JSON does not have is a message whose members belong to the outer object.
      const isPart = properties !== undefined && !(field in (properties as object));
      fields[number] = `${isPart ? '.' : field} ${container}${full(value ?? type)}`;
    }
    messages[`${packageName}.${name}`] = fields;
  }
}

/** Returns the messages of the roots, and all messages to which they refer, by name. */
function reached(messages: Messages): Messages {
  const found: Messages = {};
  const open = [...ROOTS];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const fields = messages[name];
    if (fields === undefined || name in found) continue;
    found[name] = fields;
    open.push(...Object.values(fields).map((field) => field.replace(/^\S+ (?:\[\]|\{\})?/, '')));
  }
  return found;
}

test('the recorded protobuf messages are the ones that Kubernetes declares', async () => {
  const messages: Messages = {};
  for (const [module, packages] of Object.entries(DECLARED)) {
    const folder = await folderOf(module);
    for (const each of packages)
      readDeclarations(await readFile(join(folder, each, 'generated.proto'), 'utf8'), messages);
  }
  const found = reached(messages);
  const names = Object.keys(found).toSorted();
  const lines = names.map((name) => `${JSON.stringify(name)}: ${JSON.stringify(found[name])}`);
  await expect(`{\n${lines.join(',\n')}\n}\n`).toMatchFileSnapshot(RECORDING);
});
