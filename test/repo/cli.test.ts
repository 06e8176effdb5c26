/** Tests that the command line and docs/reference/cli.md agree: options, defaults, exit codes, JSON fields. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { AGENT_HELP } from '../../src/agent/flags.ts';
import { runProgram } from '../../src/cli/program.ts';
import type { StatusJson } from '../../src/cli/status/json-form.ts';
import { EXIT } from '../../src/util/errors.ts';
import type { PreviewJson } from '../support/builders/dialects.ts';
import { COMMANDS } from '../support/commands.ts';
import { ROOT } from './tree.ts';

const page = readFileSync(`${ROOT}docs/reference/cli.md`, 'utf8');

/** Returns the part of the page from a heading to the next heading of the same level. */
function section(title: string): string {
  return page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? '';
}

/** Returns the cells of the tables' rows. No cell may contain `|`. */
function rowsOf(text: string): string[][] {
  const lines = text.split('\n').filter((line) => line.startsWith('| `') || /^\| \d/.test(line));
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

async function helpOf(...args: string[]): Promise<string> {
  let written = '';
  const write = (text: string): void => {
    written += text;
  };
  await runProgram(args, COMMANDS, { abort: new AbortController().signal, write });
  return written;
}

interface Option {
  readonly name: string;
  /** Undefined when the help names no default that the page could repeat. */
  readonly preset: string | undefined;
  /** The description in lower case, without defaults and choices. */
  readonly meaning: string;
}

/** Returns the options of a help text. Each option begins a line, and its description may continue on the next lines. */
function optionsIn(help: string): Option[] {
  const entries = help.split(/\n(?= {2}-)/).slice(1);
  return entries.flatMap((entry) => {
    const [, name = ''] = /^ {2}((?:-\w, )?--[a-z0-9-]+(?: [<[][^>\]]+[>\]])?)/.exec(entry) ?? [];
    const text = entry.replaceAll(/\s+/g, ' ');
    const [, preset] =
      /\(.*default: "?([^")]+)"?\)|default (\S+)/.exec(text)?.filter(Boolean) ?? [];
    const meaning = withoutDefault(text.slice(text.indexOf(name) + name.length)).toLowerCase();
    return name.endsWith('--help') ? [] : [{ name, preset, meaning }];
  });
}

function withoutDefault(description: string): string {
  return description
    .replace(/\((?:choices|default|preset): .*$/, '')
    .replace(/; (?:default: .*|the default)$/, '')
    .trim();
}

/** Returns the visible text of one cell of the page, in lower case. */
function plainText(cell: string): string {
  return cell
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
    .toLowerCase();
}

const DOCUMENTED: readonly (readonly [string, () => Promise<string>])[] = [
  ...COMMANDS.flatMap(({ name, options, commands }) => {
    // In a group of commands, the last command has all options.
    const last = commands?.at(-1);
    const path = last ? [name, last.name] : [name];
    const has = (last?.options ?? options ?? []).length > 0;
    return has ? [[name, async () => await helpOf(...path, '--help')] as const] : [];
  }),
  ['agent', async () => await Promise.resolve(AGENT_HELP)],
];

test('every command with options is compared, and so are defaults', async () => {
  expect(DOCUMENTED.map(([name]) => name)).toEqual(
    expect.arrayContaining(['controller', 'status', 'retry', 'kubeadm']),
  );
  expect(DOCUMENTED.length).toBeGreaterThan(10);
  const helps = await Promise.all(DOCUMENTED.map(async ([, help]) => await help()));
  expect(
    helps.flatMap(optionsIn).filter(({ preset }) => preset !== undefined).length,
  ).toBeGreaterThan(20);
});

test.each(DOCUMENTED)(
  'refit %s: the page has its options, in order, with their defaults',
  async (command, help) => {
    const options = optionsIn(await help());
    expect(options.length).toBeGreaterThan(0);
    const rows = rowsOf(section(`refit ${command}`).split('\n### ')[0] ?? '');
    expect(rows.map(([name]) => name)).toEqual(options.map(({ name }) => `\`${name}\``));
    const known = options.filter(({ preset }) => preset !== undefined);
    const written = new Map(rows.map(([name, preset]) => [name, preset]));
    expect(known.map(({ name }) => written.get(`\`${name}\``))).toEqual(
      known.map(({ preset }) => `\`${preset}\``),
    );
  },
);

test.each(COMMANDS.filter(({ options = [] }) => options.length > 0))(
  'refit $name: the page says which options are required',
  ({ name, options = [] }) => {
    const rows = rowsOf(section(`refit ${name}`).split('\n### ')[0] ?? '');
    const written = new Map(rows.map(([option, preset = '']) => [option, preset]));
    const required = options.filter(({ mandatory, defaultValue }) => mandatory && !defaultValue);
    const others = required.filter(
      ({ flags }) => written.get(`\`${flags}\``)?.startsWith('required') !== true,
    );
    expect(others.map(({ flags }) => flags)).toEqual([]);
  },
);

test.each(DOCUMENTED.filter(([command]) => command !== 'agent'))(
  'refit %s: the page describes each option in the words of the help, and may add to them',
  async (command, help) => {
    const options = optionsIn(await help());
    const rows = rowsOf(section(`refit ${command}`).split('\n### ')[0] ?? '');
    const written = new Map(rows.map(([name = '', , cell = '']) => [name, plainText(cell)]));
    const others = options.filter(({ name, meaning }) => {
      const cell = written.get(`\`${name}\``) ?? '';
      return !cell.startsWith('as for refit ') && !cell.startsWith(meaning);
    });
    expect(others.map(({ name, meaning }) => `${name}: ${meaning}`)).toEqual([]);
  },
);

test('the page has every command, and nothing else', async () => {
  const commands = [...(await helpOf('--help')).matchAll(/^ {2}([a-z-]+) .*$/gm)].map(
    ([, name]) => name,
  );
  const documented = [...page.matchAll(/^## refit (.*)$/gm)].map(([, name]) => name);
  expect(documented).toEqual(commands.filter((name) => name !== 'help'));
});

test('the table on top links to every section', () => {
  const [top = ''] = page.split('\n## ');
  const linked = [...top.matchAll(/\[([a-z-]+)\]\(#refit-([a-z-]+)\)/g)].map(
    ([, name, anchor]) => `${name} ${anchor}`,
  );
  const documented = [...page.matchAll(/^## refit (.*)$/gm)].map(([, name]) => `${name} ${name}`);
  expect(linked.toSorted()).toEqual(documented.toSorted());
});

test('the page and the help have every exit code', async () => {
  const codes = Object.values(EXIT).map(String);
  expect(rowsOf(section('Exit codes')).map(([code]) => code)).toEqual(codes);
  const [, list = ''] = /Exit codes: (.*)\./.exec(await helpOf('--help')) ?? [];
  expect(list.split(', ').map((entry) => entry.split(' ')[0])).toEqual(codes);
});

type Complete<T> = T extends readonly (infer E)[]
  ? readonly Complete<E>[]
  : T extends object
    ? { readonly [K in keyof T]-?: Complete<T[K]> }
    : T;

/** All fields of the output. The compiler requires each new field here, and the test then requires it on the page. */
const EVERYTHING: Complete<StatusJson> = {
  leader: { state: 'held', holder: '', since: '' },
  orphaned: [''],
  silentSince: '',
  plans: [
    {
      dialect: '',
      kind: '',
      namespace: '',
      cluster: '',
      name: '',
      uid: '',
      id: '',
      created: '',
      started: '',
      ended: '',
      phase: 'new',
      goesOn: true,
      reason: '',
      startsAgain: true,
      reasonCode: 'MixedVersions',
      remedy: '',
      edit: '',
      stopped: '',
      rollBack: '',
      rollsBackRun: '',
      goesBack: true,
      leavesOutGone: true,
      updateConfig: '',
      stages: [
        {
          command: 0,
          role: 'worker',
          version: '',
          maxInFlight: 1,
          chosenBy: '',
          active: true,
          selection: '',
          targets: [
            {
              name: '',
              machine: '',
              phase: 'failed',
              step: '',
              since: '',
              began: '',
              from: '',
              spent: {},
              failure: '',
              failureReason: 'HealthCheckFailing',
              refusal: { code: 'TargetMissing', message: 'w4 does not exist as a worker' },
              delay: '',
              stalled: '',
              rolledBack: true,
              etcdSnapshot: { at: '', path: '', bytes: 0, sha256: '', none: '', failed: '' },
              rollsBack: { unanswered: '', notReady: '' },
              agent: {
                ours: true,
                title: '',
                lacks: '',
                doubt: '',
                excluded: true,
                kept: { version: '', sha256: '', until: '', gone: 'Expired' },
                keptBundle: { version: '', until: '', gone: 'Expired' },
              },
              drains: 'node',
              drain: { left: 1, pods: [''], budgets: [''] },
              hadVersion: true,
              isThere: true,
              fetchesAhead: true,
              runs: '',
              asked: '',
              installed: '',
              gone: true,
              held: { by: '', reason: '', since: '', until: '' },
              pinned: '',
              wayBack: { state: 'open', until: '', message: '' },
              wave: 1,
              zone: '',
            },
          ],
        },
      ],
      waits: [
        {
          target: '',
          gate: '',
          reason: {
            code: 'InFlight',
            message: '',
            details: {
              policy: '',
              check: '',
              hook: '',
              versions: [''],
              downloads: [{ command: 0, platform: '', fault: 'noSha256' }],
            },
          },
          ends: '',
          since: '',
          until: '',
          ofStage: true,
          unapproved: 2,
          uncordon: [''],
          after: [''],
        },
      ],
      advice: [{ situation: '', nodes: [''], text: '', commands: [''], outcome: '' }],
      next: [''],
      stopsAhead: ['Paused'],
      unapproved: [2],
      policy: '',
      timeZone: '',
      paused: 'plan',
      leaderless: true,
      abort: '',
      cordoned: [{ target: '', message: '' }],
      decided: [''],
      warnings: [''],
      joined: [{ name: '', included: true, message: '' }],
      checks: [{ name: '', state: 'Passing', message: '', since: '' }],
      hooks: [{ hook: '', target: '', state: 'Failed', message: '', since: '' }],
      failedChecks: [''],
      retryableHooks: [''],
      silencing: {
        isGood: false,
        message: '',
        since: '',
        silences: [
          {
            target: '',
            node: '',
            silence: '',
            server: '',
            id: '',
            since: '',
            durationSeconds: 0,
            problem: '',
          },
        ],
      },
      unseen: [''],
      wayBack: { state: 'open', until: '', message: '' },
    },
  ],
};

/** Returns the names of the fields as jq writes them, with `[]` for each list. */
function fieldsOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return [`${path}[]`, ...fieldsOf(value[0], `${path}[]`)];
  if (typeof value !== 'object' || value === null || path.endsWith('.spent')) return [path];
  return Object.entries(value).flatMap(([name, field]) =>
    fieldsOf(field, path === '' ? name : `${path}.${name}`),
  );
}

test('the page has every field of the JSON form, in order', () => {
  const table = section('refit status').split('### JSON and YAML')[1] ?? '';
  const documented = rowsOf(table).map(([field]) => field);
  expect(documented).toEqual([...new Set(fieldsOf(EVERYTHING))].map((field) => `\`${field}\``));
});

const EVERY_PREVIEW: Complete<PreviewJson> = {
  leader: { state: 'held', holder: '', since: '' },
  plans: [
    {
      dialect: '',
      kind: '',
      namespace: '',
      cluster: '',
      name: '',
      uid: '',
      id: '',
      to: '',
      phase: 'new',
      present: 'new',
      first: '',
      reason: '',
      problems: [''],
      timeZone: '',
      paused: 'plan',
      stages: [
        {
          command: 0,
          role: 'worker',
          version: '',
          maxInFlight: 1,
          chosenBy: '',
          selection: '',
          done: 0,
          there: [''],
          moving: [''],
          held: [{ name: '', by: '', reason: '', since: '', until: '' }],
          batches: [{ wave: 1, needsApproval: true, nodes: [''] }],
        },
      ],
      waits: [
        {
          target: '',
          gate: '',
          reason: {
            code: 'InFlight',
            message: '',
            details: {
              policy: '',
              check: '',
              hook: '',
              versions: [''],
              downloads: [{ command: 0, platform: '', fault: 'noSha256' }],
            },
          },
          ends: '',
          since: '',
          until: '',
          ofStage: true,
          unapproved: 2,
          uncordon: [''],
          after: [''],
        },
      ],
      policy: { name: '', rule: '' },
      order: '',
      drains: {
        nodes: 1,
        evictable: 1,
        deletes: true,
        blocked: [
          {
            target: '',
            budgets: [{ budget: '', pods: [''], reason: '' }],
            refused: [{ pod: '', reason: 'has no controller, so nothing would create it again' }],
            refusal: '',
          },
        ],
        warnings: [''],
        unseen: '',
      },
      rollBack: '',
      noReturn: [''],
      duration: {
        ms: 1,
        perTargetMs: 1,
        basis: 'assumed',
        samples: 0,
        inWindows: true,
        window: { from: '', nodes: 1, of: 1 },
        doneAt: '',
      },
      cordoned: [{ target: '', message: '' }],
      decided: [''],
      warnings: [''],
      checks: [{ name: '', state: 'Passing', message: '', since: '' }],
      unseen: [''],
    },
  ],
  ready: [
    {
      to: '',
      from: [''],
      findings: [{ check: 'room', state: 'ok', object: '', message: '', cure: '', accepted: '' }],
    },
  ],
};

test('the page has every field of the JSON form of a preview, in order', () => {
  const table = section('refit preview').split('### The JSON form')[1] ?? '';
  const documented = rowsOf(table).map(([field]) => field);
  expect(documented).toEqual([...new Set(fieldsOf(EVERY_PREVIEW))].map((field) => `\`${field}\``));
});

test('an option without a row, and one with another default: found', () => {
  const help =
    'Usage\n\nOptions:\n  -o, --output <form>  a form\n      (choices: "a", default: "text")\n  --late  late, default 5s\n';
  expect(optionsIn(help)).toEqual([
    { name: '-o, --output <form>', preset: 'text', meaning: 'a form' },
    { name: '--late', preset: '5s', meaning: 'late, default 5s' },
  ]);
});
