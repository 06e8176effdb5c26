/**
 * Tests that readers can follow the guides: no page is too long, YAML blocks can be applied, and commands, their options
 * and the named files exist.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { AGENT_HELP } from '../../src/agent/flags.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { type UpdateConfig, updateConfigs } from '../../src/api/autopilot/update-config.ts';
import { readObjects } from '../../src/api/read-object.ts';
import { runProgram } from '../../src/cli/program.ts';
import { problemsOf, targetProblems } from '../../src/dialects/autopilot/plan/problems.ts';
import { parseManifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { readUpdateConfig } from '../../src/updates/config/read-config.ts';
import { CUSTOM_KINDS } from '../../tools/crds/registry.ts';
import { validate } from '../support/builders/validation.ts';
import { COMMANDS } from '../support/commands.ts';
import { filesOf, ROOT, type SourceFile, sourceFile } from './tree.ts';

const pages = filesOf('docs/guides/**/*.md', 'docs/runbook.md', 'README.md', 'CONTRIBUTING.md');

function blocksOf(language: string): { at: string; text: string }[] {
  return pages.flatMap(({ path, text }) =>
    [
      ...text.matchAll(
        new RegExp(`^\`\`\`${language}(?: (?!values.yaml)\\S+)?\\n(.*?)^\`\`\``, 'gms'),
      ),
    ].map(([, block = '']) => ({
      at: path,
      text: block,
    })),
  );
}

/** Returns the problems of the text. Throws if the text cannot be applied. */
function problemsIn(text: string, at: string): string[] {
  const object = parse(text) as {
    apiVersion?: string;
    kind?: string;
    metadata?: { name?: string };
  };
  if (object.apiVersion === undefined)
    return parseManifest(text, at).hosts.length > 0 ? [] : ['no hosts'];
  const kind = CUSTOM_KINDS.find(
    ({ resource }) =>
      object.apiVersion === `${resource.group}/${resource.version}` &&
      object.kind === resource.kind,
  );
  if (!kind) return object.kind && object.metadata?.name ? [] : ['no object'];
  const { objects, problems } = readObjects(text, at, [kind]);
  const read = objects[0]?.object;
  if (!read) return [...problems];
  if (kind.resource === updateConfigs)
    return [
      ...readUpdateConfig(read as UpdateConfig, { targetProblems, allowInsecure: false }).problems,
    ];
  return kind.resource === plans ? problemsOf(read as Plan).map(({ message }) => message) : [];
}

/** Returns the lines of a shell block as a shell reads them: continued lines are joined, and comments are removed. */
function linesOf(text: string): string[] {
  return text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) => line.replace(/\s#\s.*$/, '').trim());
}

async function helpOf(...args: string[]): Promise<string> {
  let written = '';
  const write = (text: string): void => {
    written += text;
  };
  await runProgram([...args, '--help'], COMMANDS, { abort: new AbortController().signal, write });
  return written;
}

/** Returns the command or the options in a line that `refit` does not have. */
async function unknownIn(line: string): Promise<string[]> {
  const [, words = ''] = /^(?:refit|(?:\S+ )*\S+\/refit\.js) ([a-z].*)$/.exec(line) ?? [];
  const [name = '', second = ''] = words.split(/\s+/);
  if (name === '') return [];
  const command = COMMANDS.find((each) => each.name === name);
  if (!command) return [name];
  const subcommand = command.commands && second !== '' ? [second] : [];
  const help = name === 'agent' ? AGENT_HELP : await helpOf(name, ...subcommand);
  const options = words.match(/(?<=\s)--?[a-z][a-z-]*/g) ?? [];
  return options.filter((option) => !new RegExp(`(?:^|[ ,])${option}(?![a-z-])`, 'm').test(help));
}

test('refit validate accepts each UpdaterSet of the guides, with its certificates', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'refit-guides-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const sets = blocksOf('yaml').filter(({ text }) => text.includes('kind: UpdaterSet\n'));
  expect(sets.length).toBeGreaterThan(1);
  for (const { text } of sets) {
    const file = join(folder, 'set.yaml');
    writeFileSync(file, text);
    let shown = '';
    await validate([file], (line) => {
      shown += line;
    });
    expect(shown).not.toBe('');
    expect(shown).not.toContain('warning');
  }
});

test.each(blocksOf('yaml'))('$at: block %# can be applied', ({ at, text }) => {
  expect(problemsIn(text, at)).toEqual([]);
});

test('commands in guides exist, with their options', async () => {
  const lines = blocksOf('sh').flatMap(({ text }) => linesOf(text));
  expect(lines.filter((line) => line.startsWith('refit ')).length).toBeGreaterThan(10);
  const unknown = await Promise.all(lines.map(unknownIn));
  expect(unknown.flat()).toEqual([]);
});

test('files that guides apply exist', () => {
  const files = blocksOf('sh').flatMap(
    ({ text }) => text.match(/\b(?:deploy|src)\/[\w./-]*\w/g) ?? [],
  );
  expect(files.length).toBeGreaterThan(3);
  expect(files.filter((path) => !existsSync(`${ROOT}${path}`))).toEqual([]);
});

test('a plan with a mistake, an unknown command and an unknown option: found', async () => {
  const plan =
    'apiVersion: autopilot.k0sproject.io/v1beta2\nkind: Plan\nmetadata: { name: autopilot }\nspec: { id: "", timestamp: now, commands: [] }\n';
  expect(problemsIn(plan, 'plan.yaml')).not.toEqual([]);
  expect(await unknownIn('refit update w1')).toEqual(['update']);
  expect(await unknownIn('refit status -w --colour')).toEqual(['--colour']);
  expect(await unknownIn('node --lite-mode /opt/refit/refit.js agent --nam c1')).toEqual(['--nam']);
});

/**
 * Returns the places where a text names a version of Refit, because such a version is out of date after the next
 * release. Manifests and tools take the version from package.json.
 */
const versionsOfRefitIn = (text: string): string[] =>
  text.match(/(?:image\.tag=|\brefit[:_-](?:linux_\w+-|image-)?v?)\d[\w.]*/g) ?? [];

test('no page and no file of values names a version of Refit', () => {
  const texts = [...pages, ...filesOf('examples/chart/*.yaml', 'deploy/chart/values.yaml')];
  expect(texts.length).toBeGreaterThan(pages.length);
  const named = texts.flatMap(({ path, text }) =>
    versionsOfRefitIn(text).map((found) => `${path}: ${found}`),
  );
  expect(named).toEqual([]);
});

test.each([
  '--set image.tag=0.1.0',
  'registry.example.com/refit:0.1.0',
  'helm install refit refit-0.1.0.tgz',
])('%s: found', (text) => expect(versionsOfRefitIn(text)).toHaveLength(1));

/** A reader looks for the answer to one question. Split a longer page into one page for each question. */
const MOST_WORDS = 3500;

/** Returns the pages with too many words. Counts words as `wc -w` does. */
function tooLong(guides: readonly SourceFile[]): string[] {
  return guides
    .map(({ path, text }) => ({ path, words: text.match(/\S+/g)?.length ?? 0 }))
    .filter(({ words }) => words > MOST_WORDS)
    .map(({ path, words }) => `${path}: ${words} words`);
}

test('no guide has too many words', () => {
  const guides = filesOf('docs/guides/**/*.md');
  expect(guides.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['docs/guides/policy.md', 'docs/guides/policy/drain.md']),
  );
  expect(tooLong(guides)).toEqual([]);
});

test('a guide with one word too many: found', () => {
  const full = sourceFile('docs/guides/full.md', 'word\n'.repeat(MOST_WORDS));
  const long = sourceFile(
    'docs/guides/policy/long.md',
    `# Long\n\n${'word '.repeat(MOST_WORDS - 1)}`,
  );
  expect(tooLong([full, long])).toEqual(['docs/guides/policy/long.md: 3501 words']);
});
