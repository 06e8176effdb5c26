/** Lists every caller of a reader of YAML or JSON, with what bounds the text that it reads. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..', 'src');
const READER =
  /(?<!function )\b(?:parseYaml|parseYamlDocument|parseFirstYamlDocument|parseForeignYaml|readObjects|planFilesIn|readForeignPlans|previewText|JSON\.parse)\(|from 'yaml'/;

/** A file of the administrator who runs the command. `readNamed` limits its size, and no other process waits for the command. */
const OWN_FILE = 'a file of the user of the command';
/** The transport limits the bytes of an answer of the API server. */
const API_SERVER = 'an answer whose bytes the transport limits';
const BOUNDS: Readonly<Record<string, string>> = {
  'agent/configuration/change-host.ts': 'a journal that the agent itself has written',
  'agent/service/status-socket.ts': 'an answer of at most MAX_ANSWER_BYTES',
  'agent/service/worker-profile.ts': 'parseForeignYaml: at most 64 KiB',
  'api/read-object.ts': 'the callers of readObjects, which this table lists',
  'cli/dashboard/actions.ts': 'a body of at most 8 KiB',
  'cli/dashboard/dashboard-command.ts': 'a worker thread, after the viewer could list plans',
  'cli/dashboard/preview.ts': 'a worker thread, after the viewer could list plans',
  'cli/preview/foreign/read-foreign-plans.ts':
    'the answer of the worker thread, at most 1 MiB of JSON',
  'cli/preview/foreign/reader-worker.ts': 'a worker thread with limits on memory and time',
  'cli/preview/plan-files.ts': 'its callers: refit preview, and the worker thread',
  'cli/preview/preview-command.ts': OWN_FILE,
  'cli/ready/file-target.ts': OWN_FILE,
  'cli/served-dashboard/viewers.ts': 'a worker thread, after the viewer could list plans',
  'cli/status/harmless.ts': 'a value that this process has written',
  'cli/validate.ts': OWN_FILE,
  'cli/why/without-secrets.ts': 'a value that this process has written',
  'coordination/kured-lock.ts': 'an annotation, whose size the API server limits',
  'dialects/autopilot/plan/readiness.ts': 'parseForeignYaml: at most 64 KiB',
  'dialects/autopilot/plan/removed-apis.ts': API_SERVER,
  'dialects/capi/command/upgrade-machines.ts': API_SERVER,
  'dialects/capi/hooks/hook-service.ts':
    'the body of a request of Cluster API, which authenticates with its certificate',
  'dialects/capi/hooks/updaters/hook-patch.ts':
    'a patch of an updater that the administrator has configured',
  'dialects/kubeadm/command/upgrade-session.ts': 'parseForeignYaml: at most 64 KiB',
  'dialects/kubeadm/plan/addons.ts':
    'a manifest or an answer of the API server, in the command of an administrator',
  'dialects/kubeadm/plan/manifest.ts':
    'a manifest of a control-plane host, in the command of its administrator',
  'dialects/kubeadm/plan/readiness.ts': 'parseForeignYaml: at most 64 KiB',
  'dialects/kubeadm/plan/serving-knowledge.ts': 'parseForeignYaml: at most 64 KiB',
  'engine/snapshot/turn-json.ts': 'its caller: refit replay',
  'hooks/webhook.ts': 'at most 4 KiB of an answer',
  'install/credentials/kubeconfig.ts': OWN_FILE,
  'install/manifests.ts': 'a file of this product',
  'kube/config/kubeconfig.ts': OWN_FILE,
  'kube/transport/answer.ts': API_SERVER,
  'kube/transport/json-lines.ts': API_SERVER,
  'updates/bundle/publish.ts': OWN_FILE,
  'updates/channel/read-index.ts': 'parseForeignYaml: at most 64 KiB',
  'updates/server/catalog.ts': 'a file that the update server itself has written',
  'util/json.ts': 'an annotation, a small file or a bounded answer; reading JSON takes linear time',
  'util/yaml.ts': 'the callers of parseYaml; parseForeignYaml reads at most 64 KiB',
  'util/yaml/scalar-places.ts': 'its caller: refit upgrade -m, with a file of its user',
  'util/yaml/scalars.ts': 'names types of the parser, and parses nothing',
};

function callers(): string[] {
  return readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .filter((path) =>
      readFileSync(join(ROOT, path), 'utf8')
        .split('\n')
        .some((line) => READER.test(line) && !/^\s*(?:\*|\/\/|\/\*)/.test(line)),
    )
    .toSorted();
}

test('each file that reads YAML or JSON is listed with what bounds the text', () => {
  expect(callers()).toEqual(Object.keys(BOUNDS).toSorted());
});

test('the text of a viewer is read only in the worker thread', () => {
  const program = readFileSync(join(ROOT, 'cli/dashboard/preview.ts'), 'utf8');
  expect(program).not.toMatch(/\b(?:planFilesIn|readObjects|parse\w*Yaml|JSON\.parse)\(/);
});
