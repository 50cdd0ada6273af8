/** A graph as boxes and lines, laid out in rows by how far each node is from the start. */

import { Background, Controls, MarkerType, ReactFlow } from "@xyflow/react";
import type { Edge, Node } from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useMemo } from "react";

export interface GraphShape {
  nodes: { id: string; kind?: string }[];
  edges: { source: string; target: string; label?: string }[];
}

const [ACROSS, DOWN] = [170, 90];
const ROOM = { padding: 0.2 }; // for the lines that lead back

export function GraphDrawing({ graph, running, done }: { graph: GraphShape; running: ReadonlySet<string>; done: ReadonlySet<string> }) {
  const edges = useMemo(() => drawnEdges(graph), [graph]);
  const places = useMemo(() => rowsOf(graph), [graph]);
  const nodes: Node[] = graph.nodes.map((node) => ({
    id: node.id,
    position: places.get(node.id) ?? { x: 0, y: 0 },
    data: { label: node.id.replace(/^__(.+)__$/, "$1") },
    className: running.has(node.id) ? "node-running" : done.has(node.id) ? "node-done" : "",
    draggable: false,
  }));
  return (
    <div className="graph">
      <ReactFlow nodes={nodes} edges={edges} fitView fitViewOptions={ROOM} nodesConnectable={false} proOptions={{ hideAttribution: false }}>
        <Background />
        <Controls showInteractive={false} position="top-right" />
      </ReactFlow>
    </div>
  );
}

function drawnEdges(graph: GraphShape): Edge[] {
  return graph.edges.map((edge, at) => ({ id: String(at), source: edge.source, target: edge.target, ...(edge.label ? { label: edge.label } : {}), markerEnd: { type: MarkerType.ArrowClosed } }));
}

/** Each node's place: its row is its shortest way from a node nothing leads to. */
export function rowsOf(graph: GraphShape): Map<string, { x: number; y: number }> {
  const targets = new Set(graph.edges.map((edge) => edge.target));
  const first = graph.nodes.filter((node) => !targets.has(node.id)).map((node) => node.id);
  const row = new Map<string, number>();
  let front = first.length > 0 ? first : graph.nodes.slice(0, 1).map((node) => node.id);
  for (let depth = 0; front.length > 0; depth += 1) {
    for (const id of front) row.set(id, depth);
    front = [...new Set(graph.edges.filter((edge) => front.includes(edge.source)).map((edge) => edge.target))].filter((id) => !row.has(id));
  }
  const filled = new Map<number, number>();
  const places = new Map<string, { x: number; y: number }>();
  for (const node of graph.nodes) {
    const depth = row.get(node.id) ?? 0;
    const column = filled.get(depth) ?? 0;
    filled.set(depth, column + 1);
    places.set(node.id, { x: column * ACROSS, y: depth * DOWN });
  }
  return places;
}
