// What the scripts share, for the type check alone: the document as `report/document.rs` writes it, and the object `page`.

type Role = 'source' | 'target';
type Matrix = (number | null)[][];

interface Device {
  name: string;
  labeled: number;
  unlabeled: number;
  source_error: number | null;
  eligible: boolean;
  pin: Role | null;
  guessing?: string;
}

interface Link {
  from: number;
  to: number;
  weight: number;
  joules: number | null;
  divergence: number | null;
}

interface Handover {
  from: number;
  to: number;
  joules: number | null;
  divergence: number | null;
}

interface Plan {
  phi_e: number;
  weights: { source: number; target: number; energy: number };
  bound: string;
  status: string;
  objective: number;
  lower_bound: number;
  gap: number;
  terms: { source: number; target: number; energy: number };
  roles: Role[];
  links: Link[];
  handovers: Handover[];
  joules: number;
  energy_share: number | null;
  accuracy: number | null;
  explanations: string[] | null;
  in_full: boolean;
}

interface Trace {
  name: string;
  values: number[];
  valid: boolean;
}

interface Target {
  name: string;
  samples: number;
  links: number;
  joules: number;
  accuracies: Record<string, number | null>;
  expected?: [number, number, number];
  student?: string;
  student_gflop?: number;
  student_joules?: number;
}

interface Seed {
  seed: number;
  edited: boolean;
  devices: Device[];
  scale: 'unit' | 'free';
  divergence: { values: Matrix; low: Matrix | null; high: Matrix | null } | null;
  plans: Plan[];
  chosen: number;
  hands_on: boolean;
  no_handovers: string | null;
  traces: Trace[];
  targets: Target[];
  confusion: { target: string; counts: number[][] }[];
}

interface Spread {
  mean: number;
  half: number | null;
  low: number;
  high: number;
}

interface Summary {
  method: string;
  label: string;
  accuracy: Spread | null;
  targets: Spread;
  links: Spread;
  joules: Spread;
  energy_share: Spread | null;
  bytes: Spread;
}

interface Run {
  name: string;
  finished: boolean;
  settings: { section: string; keys: [string, string][] }[];
  summary: Summary[];
  measuring: { estimator: string; bytes: number; joules: number; protection: string } | null;
  classes: string[];
  seeds: Seed[];
}

interface Report {
  title: string;
  version: string;
  live: { token?: string } | null;
  runs: Run[];
}

interface Mesh {
  into: Link[][];
  outof: Link[][];
  taken: (Handover | null)[];
  handed: Handover[][];
  sources: number[];
  targets: number[];
}

/** How numbers and findings read. */
interface Words {
  NONE: string;
  known(value: unknown): value is number;
  count(value: number): string;
  fixed(value: number, digits: number): string;
  number(value: number | null, digits?: number): string;
  percent(share: number | null, digits?: number): string;
  joules(value: number | null): string;
  bytes(value: number | null): string;
  signed(value: number, write: (size: number) => string): string;
  plural(n: number, one: string, many?: string): string;
  status(plan: Plan): string;
  roleCounts(plan: Plan): { sources: number; targets: number; links: number; handovers: number };
  linkCounts(plan: Plan): string;
  linkNames(plans: Plan[]): string;
  some(names: string[]): string;
  planLine(plan: Plan): string;
  meanWithin(spread: Spread | null | undefined, scale: number, digits: number): string;
  ofSeed(text: string): string;
  boundName(plan: Plan): string;
  shorten(text: unknown, most: number): string;
}

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, any>;
type Scale = (value: number) => number;
type Level = 'document' | 'run' | 'seed' | 'plan' | 'device' | 'mark' | 'width' | 'theme';

/** Everything that one script makes for the others. Elements are `any`: each is looked up by the script that knows its kind. */
interface Page {
  state: { document: Report; run: number; seed: number; plan: number; device: number | null };
  run(): Run | null;
  seed(): Seed | null;
  plan(): Plan | null;
  edited(): boolean;
  isRun(): boolean;
  section(name: string, levels: Level[], draw: () => unknown): void;
  refresh(changed: Level): void;
  drawNow(milliseconds: number, atLeast?: string): void;
  load(given: unknown): void;
  show(level: 'run' | 'seed' | 'plan' | 'device', value: number | null): void;
  replaceSeed(given: any): void;
  readEmbedded(): unknown;
  divergenceTop(of: Seed | null): number;
  mesh(of: Plan): Mesh;

  words: Words;

  html(name: string, attributes?: Attributes, ...children: Child[]): any;
  svg(name: string, attributes?: Attributes, ...children: Child[]): any;
  byId(id: string): any;
  bodyOf(id: string): any;
  canvas(width: number, height: number, label: string, ...children: Child[]): any;
  linear(domain: number[], range: number[]): Scale;
  logarithmic(domain: number[], range: number[]): Scale;
  niceTicks(low: number, high: number, wanted: number): number[];
  powerTicks(low: number, high: number): number[];
  axes(box: any, x: any, y: any, names: any): any;
  ramp(share: number): string;
  rampParts(share: number, theme: 'light' | 'dark'): number[];
  rampLegend(name: string, top: number, write: (value: number) => string): any;
  textWidth(text: string, size: number, weight?: number): number;
  fitText(text: unknown, room: number, size: number, weight?: number): string;
  empty(text: string): any;

  table(options: any): any;
  compareNames(a: string, b: string): number;
  notEdited(): any[];
  notComputed(): any;
  listenToSliders(): void;
  fleetModel(seed: Seed, plan: Plan): any;
  placeFleet(model: any, top: number, bottom: number, pitch: number): void;
  isLargePlan(plan: Plan): boolean;
  uncoverDevice(index: number, ceiling: number): void;
  focusDevice(index: number): void;
  handovers: {
    any(): boolean;
    arrowsOf(plan: Plan, at: Map<number, any>): any[];
    alongRoutes(sources: any[]): any[];
    draw(root: any, model: any, x: number): Map<any, any>;
    key(): any;
    around(node: any): Set<any>;
    spoken(node: any): string;
    panel(plan: Plan, index: number): any[];
  };
  routeOf(plan: Plan, source: number): number[];
  routeLine(route: number[]): any;
  listDevices(members: number[], name: string): void;
  deviceOpener(index: number): any;
  linkTable(heading: string, links: any[], columns: [string, (link: any) => Child][]): any[];
  explain(index: number): void;
  ours: string[];
  meanOf(spread: Spread | null | undefined): number | null;
  comparisonTable(methods: any[]): any;
  roleDifferences(): any[];
  ask(path: string, body?: unknown, signal?: AbortSignal): Promise<any>;
  editing: any;
  fillEditing(all: boolean): void;
  tidy(value: number | null): number | null;
  listEdits(): void;
  ground(): 'light' | 'dark';
}

interface Window {
  stlfReport: Page;
}
